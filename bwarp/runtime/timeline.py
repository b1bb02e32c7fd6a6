"""Record when each step of a run was active, and in which thread.

    @on_timeline("score candidates")       a call of the function is a span, and so is
    def extend(...):                       each item of a generator

    thread 1   | read | read |             | read |
    thread 2          | find seeds | score candidates | make records |

Nothing is recorded outside `record`; a call then costs one extra comparison.
"""

import functools
import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple


class Span(NamedTuple):
    """An active step, in nanoseconds since the start of the recording."""

    name: str
    thread: int
    start: int
    end: int


#: The spans so far and the start time; None while nothing is recorded.
_recording: tuple[list[Span], int] | None = None


@contextmanager
def record() -> Iterator[list[Span]]:
    """Record the steps of all threads; the list grows until the block ends."""
    global _recording
    spans: list[Span] = []
    _recording = spans, time.perf_counter_ns()
    try:
        yield spans
    finally:
        _recording = None


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record a block, for example while waiting."""
    recording, start = _recording, time.perf_counter_ns()
    try:
        yield
    finally:
        if recording is not None:
            spans, begun = recording
            now = time.perf_counter_ns()
            spans.append(Span(name, threading.get_native_id(), start - begun, now - begun))


def on_timeline(name: str) -> Callable:
    """Decorate a function to record its calls, or a generator to record each item."""

    def decorate(function: Callable) -> Callable:
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def items(*arguments, **keywords):
                end = object()
                with closing(function(*arguments, **keywords)) as made:
                    while True:
                        with span(name):
                            item = next(made, end)
                        if item is end:
                            return
                        yield item

            return items

        @functools.wraps(function)
        def call(*arguments, **keywords):
            if _recording is None:
                return function(*arguments, **keywords)
            with span(name):
                return function(*arguments, **keywords)

        return call

    return decorate
