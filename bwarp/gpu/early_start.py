"""CUDA starts while Python imports: a fifth of a second each, side by side.

    main thread   import numpy, numba, bwarp ...   | numba-cuda finds the driver at work
    another one   cuInit | the GPU's context       |

Nothing heavy is imported here. Only a GPU that is the only one to choose from is started, and only
where no other program of bwarp holds it: which of several a program takes is decided later, and
the driver does not look at CUDA_VISIBLE_DEVICES again. If the program then takes no GPU, the
context, which has memory there, is given up.
"""

import contextlib
import ctypes
import importlib.util
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from bwarp.gpu.device_selection import DEVICES, DRIVER, claim_only_gpu, release_gpu
from bwarp.gpu.waiting import BLOCKING_SYNC

__all__ = ["begin_cuda", "give_up_cuda"]

#: Subcommands that use a GPU for most of what they do, and ask for it whatever their options are.
_WITH_GPU = frozenset(("index", "map", "allmap", "seeds", "scan", "pairs", "search", "offtargets"))

#: Options with which no GPU is used.
_WITHOUT_GPU = frozenset(
    ("--backend=cpu", "--verify", "--with-reverse", "-h", "--help", "--version")
)

#: Variables of Numba that say that it uses none.
_NO_CUDA = ("NUMBA_ENABLE_CUDASIM", "NUMBA_DISABLE_CUDA")

#: The thread that starts CUDA, and what it has started.
_thread: threading.Thread | None = None
_libraries: list[ctypes.CDLL] = []


def begin_cuda(
    subcommand: str | None,
    words: Sequence[str],
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    folder: Path | None = None,
) -> None:
    """Start the GPU in a thread of its own, if a command line looks as if it would be used.

    A program that ends by an error waits for the thread: the driver does not bear to be taken apart
    while it starts.
    """
    global _thread
    if subcommand not in _WITH_GPU or not _may_want_gpu(words):
        return
    # Whatever is wrong is said where the program asks for the GPU.
    with contextlib.suppress(OSError, RuntimeError):
        if claim_only_gpu(folder, driver, devices):
            _thread = threading.Thread(target=_start, name="start of CUDA")
            _thread.start()


def give_up_cuda() -> None:
    """Undo what `begin_cuda` has done, in a program that uses no GPU after all."""
    global _thread
    if _thread is None:
        return
    _thread.join()
    _thread = None
    while _libraries:
        _libraries.pop().cuDevicePrimaryCtxRelease(0)
    release_gpu()


def _may_want_gpu(words: Sequence[str]) -> bool:
    """Whether options, variables and packages let a GPU be used."""
    return (
        bool(words)
        and _WITHOUT_GPU.isdisjoint(words)
        and ("--backend", "cpu") not in zip(words, words[1:], strict=False)
        and not any(os.environ.get(name) == "1" for name in _NO_CUDA)
        and importlib.util.find_spec("numba_cuda") is not None
    )


def _start() -> None:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libcuda.so.1")
        if library.cuInit(0) == 0:
            # Not possible once it has started.
            library.cuDevicePrimaryCtxSetFlags(0, BLOCKING_SYNC)
            if library.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0:
                _libraries.append(library)
