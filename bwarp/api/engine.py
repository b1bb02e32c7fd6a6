"""What every function here does with `backend`, `threads` and other options."""

import operator
import warnings
from collections.abc import Callable
from typing import TypeVar

from bwarp.errors import UsageError
from bwarp.runtime.backend import choose_backend, or_on_cpu
from bwarp.runtime.threads import available_threads

__all__ = ["one_of", "prepared", "threads_or_all", "whole_number"]

Result = TypeVar("Result")


def prepared(requested: str, work: Callable[[str], Result]) -> tuple[str, Result]:
    """The engine for a requested backend, and what ``work(engine)`` makes ready for it.

    As the programs do, ``"auto"`` goes on with the CPU where a GPU has too little memory.
    """
    engine = choose_backend(requested)
    return or_on_cpu(requested, engine, work, lambda said: warnings.warn(said, stacklevel=5))


def threads_or_all(threads: int | None) -> int:
    """So many threads, or as many as this process may use."""
    return available_threads() if threads is None else whole_number("threads", threads, 1, 1024)


def whole_number(name: str, value: int, least: int, most: int) -> int:
    """A whole number of any type of them, in bounds."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= most:
        raise UsageError(f"{name} {value!r} is not a whole number from {least} to {most}")
    return number


def one_of(name: str, value: str, allowed) -> str:
    """A value that is one of some texts."""
    if value not in tuple(allowed):
        raise UsageError(f"{name} {value!r} is not one of {', '.join(allowed)}")
    return value
