"""Times of kernels on the timeline, with a pretended GPU whose clock is the test's."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from bwarp.gpu import kernel_times
from bwarp.runtime import timeline
from bwarp.runtime.timeline import record


class Clock:
    """The time of host and GPU, in nanoseconds."""

    now = 10**15

    def perf_counter_ns(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()

    class Event:
        def record(self, _stream=0):
            self.time = clock.now

        def synchronize(self):
            pass

    def elapsed(first, second):
        return float(np.float32((second.time - first.time) / 1e6))

    cuda = SimpleNamespace(
        event=Event,
        event_elapsed_time=elapsed,
        get_current_device=lambda: SimpleNamespace(id=0),
        gpus=[nullcontext()],
    )
    monkeypatch.setattr(kernel_times, "cuda", cuda)
    monkeypatch.setattr(kernel_times, "time", clock)
    monkeypatch.setattr(timeline, "time", clock)
    kernel_times._origin.cache_clear()
    yield clock
    kernel_times._origin.cache_clear()


def test_kernels_of_a_long_run_have_microseconds(clock):
    begun, starts = clock.now, []
    with record() as spans:
        for _ in range(300):
            clock.now += 60 * 10**9 + 12_345_678
            starts.append(clock.now - begun)
            with kernel_times.on_gpu_timeline("kernel"):
                clock.now += 30_000
    assert len(spans) == 300
    for span, start in zip(spans, starts, strict=True):
        assert abs(span.start - start) < 5_000
        assert abs(span.end - span.start - 30_000) < 5_000
