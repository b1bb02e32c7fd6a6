"""Vector operations of the CPU for Numba: many lanes of a small integer type per instruction.

Numba's loops over lanes are rarely vectorised, so the kernels use explicit vectors. A vector is an
ordinary value in jitted code: a local variable that LLVM keeps in a register. LLVM makes every
operation correct on any processor by splitting vectors that are too wide; `VECTOR_BYTES` is the
fastest width on this machine. The docstring of each operation gives its meaning in plain Python,
with a vector as a list of numbers and a mask as a list of truth values.

    types           the vector type, loads and stores
    lanes           operations per lane: sums, extremes, comparisons, selections
    shuffles        operations that move lanes: reversal, transposition, table lookup
    instructions    prefetch and bit counts, which do not use vectors
"""

from bwarp.runtime.simd.vector import (
    VECTOR_BYTES,
    add,
    equal,
    extend,
    fill,
    fill_like,
    greater,
    lane_count,
    lanes_of,
    leading_zeros,
    load,
    load_like,
    lookup,
    mask_bits,
    mask_of,
    maximum,
    minimum,
    population_count,
    prefetch,
    reverse,
    select,
    stand_alone,
    store,
    subtract,
    transpose,
)

__all__ = [
    "VECTOR_BYTES",
    "add",
    "equal",
    "extend",
    "fill",
    "fill_like",
    "greater",
    "lane_count",
    "lanes_of",
    "leading_zeros",
    "load",
    "load_like",
    "lookup",
    "mask_bits",
    "mask_of",
    "maximum",
    "minimum",
    "population_count",
    "prefetch",
    "reverse",
    "select",
    "stand_alone",
    "store",
    "subtract",
    "transpose",
]
