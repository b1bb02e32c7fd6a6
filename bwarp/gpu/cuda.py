"""The interface to the kernel compiler; no other module imports numba-cuda.

Kernels and most code use `cuda`; `driver` copies memory, and `driver_calls` contains the functions
of the CUDA driver.
"""

from llvmlite import ir
from numba import (
    boolean,
    cuda,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from numba.cuda import api, cgutils, dispatcher, types
from numba.cuda.args import ArgHint
from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.compiler import _compile_pyfunc_with_fixup as compile_typed
from numba.cuda.core import config, event
from numba.cuda.core.errors import TypingError
from numba.cuda.cudadrv import devices, driver
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.cudadrv.devices import require_context
from numba.cuda.cudadrv.driver import (
    AutoFreePointer,
    CudaAPIError,
    CudaSupportError,
    MemoryInfo,
    NumbaCUDAMemoryManager,
    binding,
    device_pointer,
)
from numba.cuda.cudadrv.driver import driver as driver_calls
from numba.cuda.descriptor import cuda_target
from numba.cuda.dispatcher import CUDADispatcher
from numba.cuda.dispatcher import _Kernel as CompiledKernel
from numba.cuda.extending import intrinsic, typeof_impl
from numba.cuda.np.numpy_support import as_dtype, from_dtype
from numba.cuda.serialize import dumps
from numba.cuda.typing import signature
from numba_cuda import __version__ as version

from bwarp.runtime.lazy_function import LazyFunction

__all__ = [
    "ArgHint", "AutoFreePointer", "CUDACodeLibrary", "CUDADispatcher", "CompiledKernel",
    "CudaAPIError", "CudaSupportError", "DeviceNDArray", "MemoryInfo", "NumbaCUDAMemoryManager",
    "TypingError", "api", "as_dtype", "binding", "boolean", "cgutils", "compile_typed",
    "config", "cuda", "device_pointer", "devices", "dispatcher", "driver", "driver_calls", "dumps",
    "event",
    "float32", "float64", "from_dtype", "int8", "int16", "int32", "int64", "intrinsic", "ir",
    "require_context", "signature", "types", "uint8", "uint16", "uint32", "uint64",
    "version",
]  # fmt: skip


@typeof_impl.register(LazyFunction)
def _type_of_function(function: LazyFunction, _):
    """Return the type of a function of the CPU that kernels call; it is compiled for the GPU."""
    return cuda_target.typing_context.resolve_value_type(function.dispatcher)
