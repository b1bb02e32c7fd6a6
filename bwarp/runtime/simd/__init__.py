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

from types import ModuleType

import numpy as np

from bwarp.runtime.lazy_function import CompilerFunction
from bwarp.runtime.target import cpu_features

#: The bytes of a vector: 64 with AVX-512, 32 with AVX2, else 16.
VECTOR_BYTES = 64 if "avx512bw" in cpu_features() else 32 if "avx2" in cpu_features() else 16


def lanes_of(dtype) -> int:
    """Return the number of lanes of a vector of this element type on this machine."""
    return VECTOR_BYTES // np.dtype(dtype).itemsize


def _vector() -> ModuleType:
    from bwarp.runtime.simd import vector

    return vector


add = CompilerFunction(_vector, "add")
equal = CompilerFunction(_vector, "equal")
extend = CompilerFunction(_vector, "extend")
fill = CompilerFunction(_vector, "fill")
fill_like = CompilerFunction(_vector, "fill_like")
greater = CompilerFunction(_vector, "greater")
lane_count = CompilerFunction(_vector, "lane_count")
leading_zeros = CompilerFunction(_vector, "leading_zeros")
load = CompilerFunction(_vector, "load")
load_like = CompilerFunction(_vector, "load_like")
lookup = CompilerFunction(_vector, "lookup")
mask_bits = CompilerFunction(_vector, "mask_bits")
mask_of = CompilerFunction(_vector, "mask_of")
maximum = CompilerFunction(_vector, "maximum")
minimum = CompilerFunction(_vector, "minimum")
population_count = CompilerFunction(_vector, "population_count")
prefetch = CompilerFunction(_vector, "prefetch")
reverse = CompilerFunction(_vector, "reverse")
select = CompilerFunction(_vector, "select")
stand_alone = CompilerFunction(_vector, "stand_alone")
store = CompilerFunction(_vector, "store")
subtract = CompilerFunction(_vector, "subtract")
transpose = CompilerFunction(_vector, "transpose")
