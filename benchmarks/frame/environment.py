"""The machine and the code of a benchmark, as all files of results describe them."""

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
    """Return the name of the processor, for example AMD EPYC."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return models[0] if models else platform.machine()


def machine() -> str:
    """Return the processor and its number of usable cores."""
    return f"{processor()}, {available_threads()} cores"


def gpu_name() -> str:
    from bwarp.gpu.cuda import cuda

    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def git(*words: str) -> str | None:
    """Return the output of git in this checkout; None outside a repository."""
    command = ["git", "-C", str(CHECKOUT), *words]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()


@functools.cache
def commit() -> str | None:
    """Return the current commit, with a + if files of the library differ from it.

    A copy of a checkout has no commit of its own: $BWARP_COMMIT names it.
    """
    if "BWARP_COMMIT" in os.environ:
        return os.environ["BWARP_COMMIT"]
    name = git("rev-parse", "--short=9", "HEAD")
    changed = name and git("status", "--porcelain", "--untracked-files=no", "--", "bwarp")
    return f"{name}+" if changed else name


def origin() -> dict[str, str | None]:
    """Return the common part of result lines: commit, date, machine, and versions."""
    return {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%d"),
        "machine": machine(),
        "bwarp": bwarp.__version__,
        "python": platform.python_version(),
    }
