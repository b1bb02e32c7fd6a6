"""Reserve GPUs for programs that share a machine, use several GPUs, and start CUDA early.

Snakemake counts GPUs but does not assign them, and CUDA gives every program the first one. So a
program locks a GPU that no other bwarp program holds, and makes only that GPU visible to CUDA. If
CUDA_VISIBLE_DEVICES names a single GPU, that one is used without a lock.

The lock is on an empty file in the folder for temporary files. The system releases it when the
program ends for any reason.

The steps of allmap share a GPU with each other, if no other is free, but not with other programs:
connected by pipes, they run at the same time, and none can wait for another to end.
"""

import contextlib
import ctypes
import fcntl
import importlib.util
import itertools
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: Folders in which the driver and the system list the GPUs.
DRIVER, DEVICES = Path("/proc/driver/nvidia/gpus"), Path("/dev")

#: Seconds between checks for a free GPU.
PATIENCE = 0.5

#: Environment variable set if this process or a parent holds a GPU, which children share.
HELD = "BWARP_GPU"

#: CU_CTX_SCHED_BLOCKING_SYNC.
BLOCKING_SYNC = 4

#: Subcommands that may use a GPU while pipes connect them.
_STEPS = frozenset(("seed-reads", "filter-candidates", "extend-candidates"))

#: Held until `release_gpu`, or the end of the process.
_locks: list[int] = []


def is_step(subcommand: str | None) -> bool:
    """Return whether a subcommand shares its GPU with other steps of allmap."""
    return subcommand in _STEPS


def claim_gpu(
    say: Callable[[str], None],
    folder: Path | None = None,
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    most: int = 1,
    shared: bool = False,
) -> str | None:
    """Reserve a free GPU for this process, which must not have used CUDA yet; wait if none is free.

    If several are requested, wait only for the first: programs that each hold one and wait for
    another would deadlock.

    Parameters
    ----------
    say : function of str
        Called if the process must wait.
    folder : Path, optional
        Folder of the locks; by default the folder for temporary files.
    driver, devices : Path
        Folders in which the driver and the system list the GPUs.
    most : int
        Maximum number of free GPUs to reserve.
    shared : bool
        Whether to share a GPU with other processes that share it, if no GPU is free.

    Returns
    -------
    gpu : str or None
        Names of the GPUs for CUDA, separated by commas; None if there is nothing to select.
    """
    if HELD in os.environ:
        return None
    gpus = visible_gpus(os.environ, driver, devices)
    assigned = len(gpus) == 1 and "CUDA_VISIBLE_DEVICES" in os.environ
    if not gpus or assigned:
        return None
    folder = Path(folder or tempfile.gettempdir())
    ways = _ways_to_lock(shared, len(gpus))
    try:
        taken = [_lock_one(gpus, folder, say, ways)]
        for gpu in gpus:
            if len(taken) < most and gpu not in taken and _lock(gpu, folder, ways[0]):
                taken.append(gpu)
    except OSError:
        return None  # locks are not possible
    os.environ[HELD] = ",".join(taken)
    if len(gpus) > 1:
        os.environ["CUDA_VISIBLE_DEVICES"] = os.environ[HELD]
    return os.environ[HELD]


def claim_only_gpu(
    folder: Path | None = None,
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    shared: bool = False,
) -> bool:
    """Reserve the GPU if there is exactly one and it is free; if `shared`, others may share it.

    Return whether this process may use it from now on; `claim_gpu` then finds it reserved.
    """
    if HELD in os.environ:
        return True
    gpus = visible_gpus(os.environ, driver, devices)
    if len(gpus) != 1:
        return False
    if "CUDA_VISIBLE_DEVICES" not in os.environ:
        folder = Path(folder or tempfile.gettempdir())
        try:
            if not _lock(gpus[0], folder, *_ways_to_lock(shared, 1)):
                return False
        except OSError:
            return True  # locks are not possible
        os.environ[HELD] = gpus[0]
    return True


def release_gpu() -> None:
    """Release the GPU that this process reserved, if any."""
    while _locks:
        os.environ.pop(HELD, None)
        os.close(_locks.pop())


def visible_gpus(environment, driver: Path, devices: Path) -> list[str]:
    """Return the GPUs that a process may use: those of CUDA_VISIBLE_DEVICES, or all."""
    named = environment.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return installed_gpus(driver, devices)
    # CUDA stops at the first invalid name.
    gpus = []
    for name in (word.strip() for word in named.split(",")):
        if not re.fullmatch(r"\d+|(GPU|MIG)-[\w/-]+", name):
            break
        gpus.append(name)
    return gpus


def installed_gpus(driver: Path, devices: Path) -> list[str]:
    """Return the UUIDs of GPUs listed by the driver that this process may open, by slot."""
    gpus = []
    for information in sorted(driver.glob("*/information")):
        text = information.read_text()
        uuid = re.search(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)$", text, re.MULTILINE)
        minor = re.search(r"^Device Minor:\s*(\d+)$", text, re.MULTILINE)
        # A container may list all GPUs of its host but own only one.
        if uuid and minor and _can_open(devices / f"nvidia{minor[1]}"):
            gpus.append(uuid[1])
    return gpus


def _can_open(path: Path) -> bool:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _lock_one(
    gpus: Sequence[str],
    folder: Path,
    say: Callable[[str], None],
    ways: Sequence[tuple[int, ...]],
) -> str:
    """Lock the first GPU that is or becomes free, and return it."""
    waiting = False
    while True:
        for way, gpu in itertools.product(ways, gpus):
            if _lock(gpu, folder, way):
                return gpu
        if not waiting:
            waiting = True
            who = "the GPU is" if len(gpus) == 1 else f"all {len(gpus)} GPUs are"
            say(f"{who} in use by other bwarp programs: waiting")
        time.sleep(PATIENCE)


def _ways_to_lock(shared: bool, n_gpus: int) -> list[tuple[int, ...]]:
    """Return ways to lock a GPU, the best one first. Each lock of a way replaces the one before."""
    if not shared:
        return [(fcntl.LOCK_EX,)]
    of_steps = [(fcntl.LOCK_SH,)]
    # Of several GPUs, prefer one that no step uses.
    return of_steps if n_gpus == 1 else [(fcntl.LOCK_EX, fcntl.LOCK_SH), *of_steps]


def _lock(gpu: str, folder: Path, way: Sequence[int]) -> bool:
    """Lock a GPU in one of the `_ways_to_lock`; return whether it was free."""
    lock = _open_lock(folder / f"bwarp-{gpu.replace('/', '-')}.lock")
    try:
        for kind in way:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    _locks.append(lock)
    return True


def _open_lock(path: Path) -> int:
    # Locking needs only read permission, which other users have in a shared folder.
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        try:
            return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return os.open(path, flags)


# --------------------------------------------------------------------------------------------------
# CUDA starts while Python imports packages; each takes a fifth of a second.
#
#     main thread   import numpy, numba, bwarp ...   | numba-cuda finds the driver initialised
#     other thread  cuInit | the GPU's context       |
#
# Nothing slow is imported here. The GPU is started only if it is the only one and no other bwarp
# program holds it: a program selects among several GPUs later, and the driver reads
# CUDA_VISIBLE_DEVICES only once. If the program then uses no GPU, the context, which occupies
# memory on the GPU, is destroyed.


#: Subcommands that use a GPU for most of their work, with any options.
_WITH_GPU = frozenset(
    (
        "index", "map", "fq2bam", "allmap", "seeds", "scan", "pairs", "search", "offtargets",
        "seed-reads", "filter-candidates", "extend-candidates",
    )
)  # fmt: skip

#: Options that disable the GPU.
_WITHOUT_GPU = frozenset(
    ("--backend=cpu", "--verify", "--with-reverse", "-h", "--help", "--version")
)

#: Variables of Numba that disable the GPU.
_NO_CUDA = ("NUMBA_ENABLE_CUDASIM", "NUMBA_DISABLE_CUDA")

#: The thread that starts CUDA.
_thread: threading.Thread | None = None
_libraries: list[ctypes.CDLL] = []


def begin_cuda(
    subcommand: str | None,
    words: Sequence[str],
    driver: Path = DRIVER,
    devices: Path = DEVICES,
    folder: Path | None = None,
) -> None:
    """Start the GPU in a separate thread if a command line is likely to use it.

    A program that ends with an error waits for the thread, because the driver must not be unloaded
    while initialising.
    """
    global _thread
    if subcommand not in _WITH_GPU or not _may_want_gpu(words):
        return
    # Errors are reported when the program requests the GPU.
    with contextlib.suppress(OSError, RuntimeError):
        if claim_only_gpu(folder, driver, devices, is_step(subcommand)):
            _thread = threading.Thread(target=_start, name="start of CUDA")
            _thread.start()


def give_up_cuda() -> None:
    """Undo `begin_cuda` in a program that does not use a GPU after all."""
    global _thread
    if _thread is None:
        return
    _thread.join()
    _thread = None
    while _libraries:
        _libraries.pop().cuDevicePrimaryCtxRelease(0)
    release_gpu()


def _may_want_gpu(words: Sequence[str]) -> bool:
    """Return whether options, variables and packages allow a GPU."""
    return (
        bool(words)
        and _WITHOUT_GPU.isdisjoint(words)
        and ("--backend", "cpu") not in itertools.pairwise(words)
        and not any(os.environ.get(name) == "1" for name in _NO_CUDA)
        and importlib.util.find_spec("numba_cuda") is not None
    )


def _start() -> None:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libcuda.so.1")
        if library.cuInit(0) == 0:
            # This is possible only before the context exists.
            library.cuDevicePrimaryCtxSetFlags(0, BLOCKING_SYNC)
            if library.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0) == 0:
                _libraries.append(library)


# --------------------------------------------------------------------------------------------------
# Threads that wait for a GPU sleep.
#
# By default, if there are more processors than programs, CUDA polls the GPU without a pause: each
# waiting thread occupies a processor.


def sleep_while_waiting() -> None:
    """Make waiting threads sleep on every GPU; call this before a GPU is used."""
    from bwarp.gpu.cuda import CudaAPIError, cuda, driver_calls

    for number in range(len(cuda.gpus)):
        # Old drivers and GPUs in use refuse; this affects only speed.
        with contextlib.suppress(CudaAPIError):
            driver_calls.cuDevicePrimaryCtxSetFlags(number, BLOCKING_SYNC)
