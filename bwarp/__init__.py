"""FM-index seeding, histogram filtering and pairwise alignment on NVIDIA GPUs and CPUs.

The library is pure functions over NumPy arrays: files -> arrays -> functions -> arrays -> files.
Only `bwarp.cli` parses arguments, and nothing here knows of Snakemake. What takes long to import is
imported when it is first used.
"""

import importlib

from bwarp.runtime.compiled_code import keep_compiled_code

__version__ = "0.1.0"

__all__ = ["Mapper", "__version__"]

keep_compiled_code()

#: Where a name is from. Texts, for an import counts as code that every program runs.
_HOMES = {"Mapper": "bwarp.mapping.in_memory"}


def __getattr__(name: str):
    """Import a name when it is first used: nothing else waits for it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bwarp' has no attribute {name!r}")
