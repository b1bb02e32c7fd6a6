"""A GPU for every program where several run on one machine, held by a lock.

Snakemake counts GPUs but hands out none, and CUDA gives everybody the first. So a program takes a
lock on a GPU that no other program of bwarp holds, and shows CUDA that GPU alone. Where
CUDA_VISIBLE_DEVICES names one GPU, that one is used without a lock.

The lock is an empty file in the folder for temporary files. It is released by the system when
the program ends, however that happens.
"""

import contextlib
import ctypes
import fcntl
import importlib.util
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: Where the driver and the system list the GPUs.
DRIVER, DEVICES = Path("/proc/driver/nvidia/gpus"), Path("/dev")

#: Seconds between two looks for a GPU that has become free.
PATIENCE = 0.5

#: Set where this process, or one that started it, holds a GPU: its children share it.
HELD = "BWARP_GPU"

#: CU_CTX_SCHED_BLOCKING_SYNC.
BLOCKING_SYNC = 4

#: Held until `release_gpu`, or the end of the process.
_locks: list[int] = []


def claim_gpu(
    say: Callable[[str], None],
    folder: Path | None = None,
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    most: int = 1,
) -> str | None:
    """Take a free GPU for this process, which must not have used CUDA yet; wait for one.

    Of several that are wanted only the first is waited for: programs that each held one and waited
    for another would wait for ever.

    Parameters
    ----------
    say : function of str
        Called if one must be waited for.
    folder : Path, optional
        Where the locks are, the folder for temporary files by default.
    driver, devices : Path
        Where the driver and the system list the GPUs.
    most : int
        Take up to so many that are free.

    Returns
    -------
    gpu : str or None
        What CUDA calls the GPU, several with commas between; None where there is nothing to
        select.
    """
    if HELD in os.environ:
        return None
    gpus = visible_gpus(os.environ, driver, devices)
    assigned = len(gpus) == 1 and "CUDA_VISIBLE_DEVICES" in os.environ
    if not gpus or assigned:
        return None
    folder = Path(folder or tempfile.gettempdir())
    try:
        taken = [_lock_one(gpus, folder, say)]
        for gpu in gpus:
            if len(taken) < most and gpu not in taken and _lock(gpu, folder):
                taken.append(gpu)
    except OSError:
        return None  # no lock can be made
    os.environ[HELD] = ",".join(taken)
    if len(gpus) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ[HELD]
    return os.environ[HELD]


def claim_only_gpu(
    folder: Path | None = None, driver: Path = DRIVER, devices: Path = DEVICES
) -> bool:
    """Take the GPU where there is one to choose from, and nobody has to be waited for.

    Returns whether this process may use it from now on; `claim_gpu` then finds it taken.
    """
    if HELD in os.environ:
        return True
    gpus = visible_gpus(os.environ, driver, devices)
    if len(gpus) != 1:
        return False
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        try:
            if not _lock(gpus[0], Path(folder or tempfile.gettempdir())):
                return False
        except OSError:
            return True  # no lock can be made
        os.environ[HELD] = gpus[0]
    return True


def release_gpu() -> None:
    """Let others take the GPU that this process took, if it did."""
    while _locks:
        os.environ.pop(HELD, None)
        os.close(_locks.pop())


def visible_gpus(environment, driver: Path, devices: Path) -> list[str]:
    """What CUDA calls the GPUs that a process may use: those of CUDA_VISIBLE_DEVICES, or all."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return installed_gpus(driver, devices)
    # CUDA stops at the first name that is none.
    gpus = []
    for name in (word.strip() for word in named.split(",")):
        if not re.fullmatch(r"\d+|(GPU|MIG)-[\w/-]+", name):
            break
        gpus.append(name)
    return gpus


def installed_gpus(driver: Path, devices: Path) -> list[str]:
    """The UUIDs of the GPUs that the driver lists and this process may open, by their slots."""
    gpus = []
    for information in sorted(driver.glob("*/information")):
        text = information.read_text()
        uuid = re.search(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)$", text, re.MULTILINE)
        minor = re.search(r"^Device Minor:\s*(\d+)$", text, re.MULTILINE)
        # A container may list all GPUs of its host, and own one.
        if uuid and minor and _can_open(devices / f"nvidia{minor[1]}"):
            gpus.append(uuid[1])
    return gpus


def _can_open(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _lock_one(gpus: Sequence[str], folder: Path, say: Callable[[str], None]) -> str:
    """The first GPU that can be locked, at once or later."""
    waiting = False
    while True:
        for gpu in gpus:
            if _lock(gpu, folder):
                return gpu
        if not waiting:
            waiting = True
            who = "the GPU is" if len(gpus) == 1 else f"all {len(gpus)} GPUs are"
            say(f"{who} in use by other programs of bwarp: waiting for one")
        time.sleep(PATIENCE)


def _lock(gpu: str, folder: Path) -> bool:
    """Whether the GPU was free, and is this process's now."""
    lock = _open_lock(folder / f"bwarp-{gpu.replace('/', '-')}.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    _locks.append(lock)
    return True


def _open_lock(path: Path) -> int:
    # Reading is enough for a lock, and all that others may do with our file in a shared folder.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return os.open(path, flags)


# --------------------------------------------------------------------------------------------------
# CUDA starts while Python imports: a fifth of a second each, side by side.
#
#     main thread   import numpy, numba, bwarp ...   | numba-cuda finds the driver at work
#     another one   cuInit | the GPU's context       |
#
# Nothing heavy is imported here. Only a GPU that is the only one to choose from is started, and
# only where no other program of bwarp holds it: the program decides later which of several GPUs it
# takes, and the driver does not look at CUDA_VISIBLE_DEVICES again. If the program then takes no
# GPU, the context, which has memory there, is given up.


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
