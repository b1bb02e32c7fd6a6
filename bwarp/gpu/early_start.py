"""CUDA starts while Python imports: a fifth of a second each, side by side.

    main thread   import numpy, numba, bwarp ...   | numba-cuda finds the driver at work
    another one   cuInit | the GPU's context       |

Nothing heavy is imported here. Only a GPU that is the only one to choose from is started, and only
where no other program of bwarp holds it: which of several a program takes is decided later, and
the driver does not look at CUDA_VISIBLE_DEVICES again.
"""

import ctypes
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from bwarp.gpu.device_selection import DEVICES, DRIVER, HELD, is_free, visible_gpus
from bwarp.gpu.waiting import BLOCKING_SYNC

__all__ = ["begin_cuda"]

#: Subcommands that use a GPU for most of what they do.
_WITH_GPU = frozenset(
    ("index", "map", "allmap", "seeds", "mems", "scan", "pairs", "search", "offtargets")
)


def begin_cuda(
    subcommand: str | None,
    words: Sequence[str],
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    folder: Path | None = None,
) -> threading.Thread | None:
    """Start the GPU in a thread of its own, if a command line looks as if it would be used.

    The end of the program waits for the thread: the driver does not bear to be taken apart while it
    starts.
    """
    if subcommand not in _WITH_GPU or not _may_want_gpu(words):
        return None
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return None
    gpus = visible_gpus(os.environ, driver, devices)
    if len(gpus) != 1 or not (HELD in os.environ or is_free(gpus[0], folder)):
        return None
    thread = threading.Thread(target=_start, name="start of CUDA")
    thread.start()
    return thread


def _may_want_gpu(words: Sequence[str]) -> bool:
    """Whether options ask neither for the CPU nor for help."""
    no_gpu = {"--backend=cpu", "-h", "--help", "--version"}
    pairs = zip(words, words[1:], strict=False)
    return bool(words) and no_gpu.isdisjoint(words) and ("--backend", "cpu") not in pairs


def _start() -> None:
    """What fails here fails again, and is explained, where the program asks for the GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        if library.cuInit(0) == 0:
            # Not possible once it has started.
            library.cuDevicePrimaryCtxSetFlags(0, BLOCKING_SYNC)
            library.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)
    except (OSError, AttributeError):
        return
