"""Timing on a GPU: kernels, by events, and steps, which launch kernels."""

import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from bwarp.gpu.cuda import cuda

__all__ = ["KernelClock", "StepClock", "kernel_seconds", "microseconds_each"]

#: Number of steps or kernels to show.
_MOST = 40

#: Naps of 20 microseconds, each of which may take up to twice as long.
_NAPS, _NAP = 10, 20_000


@cuda.jit
def _sleep(naps):
    for _ in range(naps):
        cuda.nanosleep(_NAP)


class KernelClock:
    """Adds up the time of each kernel launched inside it, by name.

    The GPU sleeps before each kernel until the launch and the events around it are queued;
    otherwise the time of a short kernel would be that of the host between the events.
    """

    def __enter__(self) -> "KernelClock":
        from bwarp.gpu.kernel import Kernel

        self.events, self.kind, self.launch = [], Kernel, Kernel._launch
        clock = self

        def timed(kernel, configuration, *arguments):
            before, after = cuda.event(), cuda.event()
            _sleep[1, 1](_NAPS)
            before.record()
            clock.launch(kernel, configuration, *arguments)
            after.record()
            clock.events.append((kernel.__name__, before, after))

        Kernel._launch = timed
        return self

    def __exit__(self, *_) -> None:
        self.kind._launch = self.launch
        cuda.synchronize()
        self.seconds = defaultdict(float)
        for name, before, after in self.events:
            self.seconds[name] += cuda.event_elapsed_time(before, after) / 1000

    def clear(self) -> None:
        """Discard the launches so far."""
        self.events.clear()

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class StepClock:
    """Adds up the time of steps by name, each until the GPU has finished its work."""

    def __init__(self):
        self.seconds: Counter[str] = Counter()

    def __call__(self, name: str, function: Callable, *arguments):
        """Call the function and time it; return its result."""
        start = time.perf_counter()
        result = function(*arguments)
        cuda.synchronize()
        self.seconds[name] += time.perf_counter() - start
        return result

    def clear(self) -> None:
        """Discard the steps so far."""
        self.seconds.clear()


def kernel_seconds(work: Callable, repeats: int = 5) -> float:
    """Return the median GPU time of the kernels of a call, after one that is not counted."""
    work()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, stop = cuda.event(), cuda.event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cuda.event_elapsed_time(start, stop) / 1e3)
    return statistics.median(times)


def microseconds_each(seconds: dict[str, float], n: int) -> dict[str, float]:
    """Return the longest times by name, in microseconds per item, for n items."""
    longest = sorted(seconds.items(), key=lambda item: -item[1])[:_MOST]
    return {name: round(1e6 * value / n, 4) for name, value in longest}
