"""What every function here does with `backend`, `threads` and other options."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from bwarp.options.common import THREADS
from bwarp.runtime.backend import choose_backend, or_on_cpu
from bwarp.runtime.threads import available_threads

Result = TypeVar("Result")


def prepared(requested: str, work: Callable[[str], Result]) -> tuple[str, Result]:
    """The engine for a requested backend, and what ``work(engine)`` makes ready for it.

    As the programs do, ``"auto"`` goes on with the CPU where a GPU has too little memory.
    """
    engine = choose_backend(requested)
    return or_on_cpu(requested, engine, work, lambda said: warnings.warn(said, stacklevel=5))


def threads_or_all(threads: int | None) -> int:
    """So many threads, or as many as this process may use."""
    return available_threads() if threads is None else THREADS.check(threads)
