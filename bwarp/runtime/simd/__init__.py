"""Vector operations of the CPU for Numba: many lanes of one small integer, one instruction each.

Numba's own loops over lanes are seldom vectorised, so the kernels say what they mean in vectors.
A vector is a value like any other in jitted code: a local variable that LLVM keeps in a register.
LLVM makes every operation correct on any processor, splitting what is too wide; `VECTOR_BYTES`
is the width that is fastest here. Beside each operation stands its meaning in plain Python, where
a vector is a list of numbers and a mask is a list of truth values.

    vector          the type, and how it comes from memory and goes there
    lanes           each lane by itself: sums, extremes, comparisons, selections
    shuffles        lanes moved: turned round, turned as a square, looked up in a table
    instructions    prefetch and counts of bits, which are not on vectors
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
