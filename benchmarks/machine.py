"""What a benchmark ran on, in the words that every file of results uses."""

import platform
import re
from pathlib import Path

from bwarp.runtime.threads import available_threads

__all__ = ["machine", "processor"]


def processor() -> str:
    """The processor's name: AMD EPYC, say."""
    models = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return models[0] if models else platform.machine()


def machine() -> str:
    """The processor and how many of its cores may be used."""
    return f"{processor()}, {available_threads()} cores"
