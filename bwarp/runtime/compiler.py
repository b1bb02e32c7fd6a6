"""The internals of Numba and LLVM that the CPU code uses; no other module imports them."""

from llvmlite import __version__ as llvmlite_version
from llvmlite import binding, ir
from numba.core import cgutils, event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.datamodel import models
from numba.core.dispatcher import _FunctionCompiler as FunctionCompiler
from numba.core.environment import Environment
from numba.core.errors import RequireLiteralValue
from numba.core.extending import intrinsic, overload, register_model
from numba.core.registry import cpu_target
from numba.core.runtime import nrt
from numba.core.serialize import dumps
from numba.np.numpy_support import as_dtype, from_dtype

#: Options of `numba.njit` for functions that do not count references to arrays. The functions that
#: they call do not count them either.
UNCOUNTED = {"_nrt": False}

__all__ = [
    "UNCOUNTED", "CompileResult", "Environment", "FunctionCompiler", "JITCodeLibrary",
    "RequireLiteralValue",
    "as_dtype", "binding", "cgutils", "cpu_target", "dumps", "event", "from_dtype", "intrinsic",
    "ir", "llvmlite_version", "models", "nrt", "overload", "register_model", "types",
]  # fmt: skip
