"""FM-index seeding, histogram filtering and pairwise alignment on NVIDIA GPUs and CPUs.

The library is pure functions over NumPy arrays: files -> arrays -> functions -> arrays -> files.
Nothing here parses arguments or knows of Snakemake; the programs in scripts/ and the rules in
workflow/ do that.
"""

from bwarp.compiled_code import keep_compiled_code

__version__ = "0.1.0"

__all__ = ["Mapper", "__version__"]

keep_compiled_code()


def __getattr__(name: str):
    """`bwarp.Mapper` is imported when it is first used: nothing else waits for it."""
    if name == "Mapper":
        from bwarp.mapping.in_memory import Mapper

        return Mapper
    raise AttributeError(f"module 'bwarp' has no attribute {name!r}")
