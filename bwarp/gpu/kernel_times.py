"""Record when kernels run on a GPU, for the timeline.

    host    event | launch | event | other work ...
    GPU         ... other kernels | event, kernel, event |

The GPU notes its time at each event. One more event per GPU and minute, at a known time of the
host, relates both clocks; the driver returns the time between two events in milliseconds as
float32, which has microseconds only if it is short.
"""

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from typing import NamedTuple

from bwarp.gpu.cuda import cuda
from bwarp.runtime.timeline import Span, add_later, start_of_recording

#: Number of events; the best one relates the clocks.
_TRIES = 5

#: Nanoseconds after which the clocks are related again.
_MINUTE = 60 * 10**9


class _Origin(NamedTuple):
    """An event of a GPU, and when it happened, in nanoseconds of the recording."""

    event: object
    time: int


@contextmanager
def on_gpu_timeline(name: str, stream=0) -> Iterator[None]:
    """Record when the kernel that the block launches on a stream runs."""
    gpu = cuda.get_current_device().id
    begun = start_of_recording()
    origin = _origin(gpu, begun, (time.perf_counter_ns() - begun) // _MINUTE)
    before, after = cuda.event(), cuda.event()
    before.record(stream)
    yield
    after.record(stream)
    add_later(partial(_span_of, name, gpu, origin, before, after))


@functools.lru_cache(maxsize=64)
def _origin(_gpu: int, begun: int, _minute: int) -> _Origin:
    """Return an event of a GPU in a minute of the recording that began at a time.

    Among several events, it is the one that took the shortest time, because other processes on the
    GPU delay some of them.
    """
    tries = []
    for _ in range(_TRIES):
        event, start = cuda.event(), time.perf_counter_ns()
        event.record()
        event.synchronize()
        end = time.perf_counter_ns()
        tries.append((end - start, _Origin(event, end - begun)))
    return min(tries, key=itemgetter(0))[1]


def _span_of(name: str, gpu: int, origin: _Origin, before, after) -> Span:
    with cuda.gpus[gpu]:
        after.synchronize()
        milliseconds = [cuda.event_elapsed_time(origin.event, one) for one in (before, after)]
    start, end = (origin.time + int(1e6 * one) for one in milliseconds)
    return Span(name, -1 - gpu, start, end)
