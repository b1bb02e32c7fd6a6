"""Handle the arguments `backend` and `threads` of all functions of this package."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from bwarp.options.common import THREADS
from bwarp.runtime.backend import choose_backend, or_on_cpu
from bwarp.runtime.threads import available_threads

Result = TypeVar("Result")


def prepared(requested: str, work: Callable[[str], Result]) -> tuple[str, Result]:
    """Return the engine for a requested backend, and the result of ``work(engine)``.

    As in the programs, ``"auto"`` falls back to the CPU if a GPU has too little memory.
    """
    engine = choose_backend(requested)
    return or_on_cpu(requested, engine, work, lambda said: warnings.warn(said, stacklevel=5))


def threads_or_all(threads: int | None) -> int:
    """Return `threads`, or the number of threads that this process may use."""
    return available_threads() if threads is None else THREADS.check(threads)
