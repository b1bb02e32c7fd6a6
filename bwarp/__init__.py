"""FM-index seeding, histogram filtering and pairwise alignment on NVIDIA GPUs and CPUs.

The library is pure functions over NumPy arrays: files -> arrays -> functions -> arrays -> files.
Only `bwarp.cli` parses arguments, and nothing here knows of Snakemake. What takes long to import is
imported when it is first used.
"""

import importlib

__version__ = "0.1.0"

#: Where a name is from. Texts, for an import counts as code that every program runs.
_HOMES = {
    "Index": "bwarp.api.index",
    "InputError": "bwarp.errors",
    "Mapper": "bwarp.api.mapper",
    "UsageError": "bwarp.errors",
    "align_pairs": "bwarp.api.pairs",
    "find_loci": "bwarp.api.loci",
    "find_mems": "bwarp.api.mems",
    "find_offtargets": "bwarp.api.offtargets",
    "find_seeds": "bwarp.api.seeds",
    "read_table": "bwarp.api.tables",
    "scan": "bwarp.api.scan",
    "search": "bwarp.api.search",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604


def __getattr__(name: str):
    """Import a name when it is first used: nothing else waits for it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bwarp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What can be typed after the dot, before it was imported."""
    return sorted({*globals(), *_HOMES})
