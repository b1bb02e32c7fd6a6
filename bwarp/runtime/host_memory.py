"""Determine the memory still available to this process: free memory and limits of its job."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

try:
    import resource
except ImportError:  # not on Windows
    resource = None


_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def available_bytes(root: Path = Path("/")) -> int:
    """Return the minimum of the machine's free memory and the limits of this process, in bytes.

    Parameters
    ----------
    root : Path
        Root of the system's files, for tests.
    """
    return max(0, min(_limits(root), default=1 << 62))


def parse_size(text: str) -> int:
    """Parse a size such as 16G, 800M or 1.5g to bytes.

    Raises
    ------
    ValueError
        For anything else. A number without a unit is rejected, because programs disagree
        whether it means bytes or megabytes.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT])i?B?", text.strip(), re.IGNORECASE)
    if not found:
        raise ValueError(f"{text!r} is not a size such as 16G or 800M")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _limits(root: Path) -> Iterator[int]:
    meminfo = text_of(root / "proc/meminfo")
    if found := re.search(r"^MemAvailable: +(\d+) kB", meminfo, re.MULTILINE):
        yield int(found[1]) * 1024
    elif hasattr(os, "sysconf"):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    # The job's control group and all its parents: version 2, then version 1.
    groups = re.findall(r"^\d+:(.*?):(.*)$", text_of(root / "proc/self/cgroup"), re.MULTILINE)
    for controllers, path in groups:
        if controllers and "memory" not in controllers.split(","):
            continue
        kind = ("memory.max", "memory.current") if not controllers else (
            "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"
        )  # fmt: skip
        top = root / "sys/fs/cgroup" / Path(kind[0]).parent
        inner = top / path.lstrip("/")
        for folder in (inner, *inner.parents):
            most = text_of(folder / Path(kind[0]).name).strip()
            used = text_of(folder / Path(kind[1]).name).strip()
            if most.isdigit() and used.isdigit():
                cached = re.search(
                    r"^(?:total_)?inactive_file (\d+)$",
                    text_of(folder / "memory.stat"),
                    re.MULTILINE,
                )
                yield int(most) - int(used) + (int(cached[1]) if cached else 0)
            if folder == top:
                break
    if resource:
        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            pages = text_of(root / "proc/self/statm").split()
            yield most - (int(pages[0]) * resource.getpagesize() if pages else 0)


def text_of(path: Path) -> str:
    """Return the content of a file, or "" if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
