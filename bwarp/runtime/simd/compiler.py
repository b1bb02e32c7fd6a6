"""The Numba and LLVM internals that the CPU code uses; no other module imports them for
intrinsics and vectors."""

from llvmlite import binding, ir
from numba.core import cgutils, types
from numba.core.datamodel import models
from numba.core.errors import RequireLiteralValue
from numba.core.extending import intrinsic, overload, register_model
from numba.core.registry import cpu_target

__all__ = [
    "RequireLiteralValue", "binding", "cgutils", "cpu_target", "intrinsic", "ir", "models",
    "overload", "register_model", "types",
]  # fmt: skip
