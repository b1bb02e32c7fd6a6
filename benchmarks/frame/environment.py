"""What a benchmark ran on, in the words that every file of results uses."""

import functools
import os
import platform
import re
import subprocess
import time
from pathlib import Path

import bwarp
from bwarp.runtime.threads import available_threads

__all__ = ["CHECKOUT", "commit", "git", "gpu_name", "machine", "origin", "processor"]

CHECKOUT = Path(__file__).resolve().parents[2]


def processor() -> str:
    """The processor's name: AMD EPYC, say."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return models[0] if models else platform.machine()


def machine() -> str:
    """The processor and how many of its cores may be used."""
    return f"{processor()}, {available_threads()} cores"


def gpu_name() -> str:
    from bwarp.gpu.cuda import cuda

    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def git(*words: str) -> str | None:
    """What git says of this checkout; None where it is not one."""
    command = ["git", "-C", str(CHECKOUT), *words]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()


@functools.cache
def commit() -> str | None:
    """The commit that runs; with a + where files of the library differ from it.

    A copy of a checkout has no commit of its own: $BWARP_COMMIT names it.
    """
    if "BWARP_COMMIT" in os.environ:
        return os.environ["BWARP_COMMIT"]
    name = git("rev-parse", "--short=9", "HEAD")
    changed = name and git("status", "--porcelain", "--untracked-files=no", "--", "bwarp")
    return f"{name}+" if changed else name


def origin() -> dict[str, str | None]:
    """What every line of results holds: commit, date, machine, and versions."""
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "bwarp": bwarp.__version__,
        "python": platform.python_version(),
    }
