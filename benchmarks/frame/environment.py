"""What a benchmark ran on, in the words that every file of results uses."""

import platform
import re
import time
from pathlib import Path

import bwarp
from bwarp.runtime.threads import available_threads

__all__ = ["gpu_name", "machine", "processor", "today", "versions"]


def processor() -> str:
    """The processor's name: AMD EPYC, say."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return models[0] if models else platform.machine()


def machine() -> str:
    """The processor and how many of its cores may be used."""
    return f"{processor()}, {available_threads()} cores"


def gpu_name() -> str:
    from numba import cuda

    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def versions() -> dict[str, str]:
    return {"bwarp": bwarp.__version__, "python": platform.python_version()}


def today() -> dict[str, str]:
    """The machine, Python's version and the date."""
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }
