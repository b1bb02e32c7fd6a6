"""Record when each step of a run was active, and in which thread.

    @on_timeline("score candidates")       a call of the function is a span, and so is
    def extend(...):                       each item of a generator

    thread 1   | read | read |             | read |
    thread 2          | find seeds | score candidates | make records |

Kernels of GPUs are spans too, whose times are known only later (`add_later`).

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
    """An active step, in nanoseconds since the start of the recording.

    The thread of a kernel on GPU i is -1 - i.
    """

    name: str
    thread: int
    start: int
    end: int


class _Recording(NamedTuple):
    """The spans so far, functions that return further ones at the end, and the start time."""

    spans: list[Span]
    later: list[Callable[[], Span]]
    begun: int


#: None while nothing is recorded.
_recording: _Recording | None = None


@contextmanager
def record() -> Iterator[list[Span]]:
    """Record the steps of all threads; the list is complete once the block ends."""
    global _recording
    recording = _recording = _Recording([], [], time.perf_counter_ns())
    try:
        yield recording.spans
        recording.spans.extend([span_of() for span_of in recording.later])
    finally:
        _recording = None


def is_recording() -> bool:
    """Return whether a timeline is recorded."""
    return _recording is not None


def add_later(span_of: Callable[[], Span]) -> None:
    """Record the span that a function returns when the recording ends.

    Its times are those of `time.perf_counter_ns` minus `start_of_recording`.
    """
    if _recording is not None:
        _recording.later.append(span_of)


def start_of_recording() -> int:
    """Return the start of the recording by `time.perf_counter_ns`, in nanoseconds."""
    return _recording.begun if _recording is not None else 0


@contextmanager
def span(name: str) -> Iterator[None]:
    """Record a block, for example while waiting."""
    recording, start = _recording, time.perf_counter_ns()
    try:
        yield
    finally:
        if recording is not None:
            begun, now = recording.begun, time.perf_counter_ns()
            recording.spans.append(
                Span(name, threading.get_native_id(), start - begun, now - begun)
            )


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
