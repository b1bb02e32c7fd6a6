"""FM-index seeding, histogram filtering and pairwise alignment on NVIDIA GPUs and CPUs.

The functions return data frames with the rows of the tables that the programs write.
"""

import importlib
from pathlib import Path

__version__ = "0.1.0"

# Modules that are slow to import are imported on first use, because every program imports bwarp.
# The stub, which editors read, has the module of each name: from MODULE import NAME as NAME.
_HOMES = {
    words[3]: words[1]
    for words in map(str.split, Path(__file__).with_suffix(".pyi").read_text().splitlines())
    if words[:1] == ["from"]
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str):
    """Import a name on first use."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bwarp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List all names, including those not imported yet."""
    return sorted({*globals(), *_HOMES})
