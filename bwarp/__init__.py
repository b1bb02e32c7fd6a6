"""FM-index seeding, histogram filtering and pairwise alignment on NVIDIA GPUs and CPUs.

The library is pure functions over NumPy arrays: files -> arrays -> functions -> arrays -> files.
Only `bwarp.cli` parses arguments, and nothing here depends on Snakemake. Modules that are slow to
import are imported on first use; __init__.pyi tells editors what they define.
"""

import importlib

__version__ = "0.1.0"

#: The source module of each name, as text, because every program would run an import as code.
_HOMES = {
    "Index": "bwarp.api.index",
    "InputError": "bwarp.errors",
    "Mapper": "bwarp.api.mapper",
    "UsageError": "bwarp.errors",
    "align_pairs": "bwarp.api.pairs",
    "design_guides": "bwarp.api.guide_design",
    "find_loci": "bwarp.api.allmap",
    "find_mems": "bwarp.api.mems",
    "find_offtargets": "bwarp.api.offtargets",
    "find_products": "bwarp.api.primers",
    "find_seeds": "bwarp.api.seeds",
    "list_guides": "bwarp.api.guides",
    "pair_nickases": "bwarp.api.guide_design",
    "read_table": "bwarp.api.tables",
    "scan": "bwarp.api.scan",
    "search": "bwarp.api.search",
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
