"""Report progress on standard error: a line rewritten on a terminal, occasional lines in a log.

    1,310,720 reads done, 512,400 per second, 98.7 % mapped, 3 min 20 s left

The time left is estimated from the number of items or, if unknown, from the sizes of the input
files: the operating system knows how far a file has been read, so readers need not report it.
"""

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TextIO

from bwarp.counted import counted

#: Seconds between reports.
ON_A_TERMINAL, IN_A_LOG = 1.0, 10.0

#: Compiling for fewer seconds than this is not reported.
LONG_TO_COMPILE = 1.0

_ANNOUNCEMENT = (
    "compiling for this machine what no earlier run has needed "
    "(bwarp compile does it for all programs and options at once)"
)

#: Printed at the end of a program; these seconds are not part of its work.
_TOOK = "compiling for this machine took {:.1f} s, which later runs will not need"

#: Seconds spent compiling in this process, by kind of event.
_compiling: dict[str, float] = {}

#: Return to the start of the line and erase it.
_WIPE = "\r\x1b[K"


#: Whether only warnings and errors are printed.
_quiet = False


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Print only warnings and errors within the block, or everything if `quiet` is false."""
    global _quiet
    before, _quiet = _quiet, quiet
    try:
        yield
    finally:
        _quiet = before


def say(message: str, stream: TextIO | None = None) -> None:
    """Print a line of progress or a warning to standard error without buffering."""
    if not _quiet or message.startswith("warning: "):
        write_line(message, stream)


def write_line(message: str, stream: TextIO | None = None) -> None:
    """Print a message to standard error without buffering, replacing a line of progress.

    Escape sequences in names of files and sequences are shown, not sent to the terminal.
    """
    stream = stream or sys.stderr
    wipe = _WIPE if on_terminal(stream) else ""
    print(wipe + _escaped(message), file=stream, flush=True)


def _escaped(message: str) -> str:
    """Return a message with control characters escaped as in Python."""
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape").decode()
        for letter in message
    )


def on_terminal(stream: TextIO) -> bool:
    """Return whether the stream is a terminal that can erase a line."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def status_line(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Callable[[float], str]], None]]:
    """Yield a function that prints a line if the last one was printed long enough ago.

    The function takes a function that formats the line from the seconds since the start.
    """
    stream = stream or sys.stderr
    terminal = on_terminal(stream)
    every = ON_A_TERMINAL if terminal else IN_A_LOG
    start = last = clock()

    def show(line: Callable[[float], str]) -> None:
        nonlocal last
        now = clock()
        if now - last >= every and not _quiet:
            last = now
            stream.write(_WIPE + line(now - start) if terminal else line(now - start) + "\n")
            stream.flush()

    try:
        yield show
    finally:
        if terminal and last > start:
            stream.write(_WIPE)
            stream.flush()


@contextmanager
def progress(
    item: str,
    total: int | None = None,
    files: Sequence[str] = (),
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Callable[[int, str], None]]:
    """Yield a function that reports progress if the last report was long enough ago.

    Parameters
    ----------
    item : str
        Name of the items, in the singular.
    total : int, optional
        Number of items.
    files : sequence of str
        Input files, if `total` is not known.

    Examples
    --------
    >>> with progress("read", files=["reads.fq.gz"]) as report:
    ...     report(65_536, "98.7 % mapped")  # prints if it is time
    """
    first = None

    def estimate(done: int) -> None:
        # Readers are always ahead by about the same amount, so the number of items in a file is
        # estimated from the items between two reports.
        nonlocal total, first
        part = part_read(files)
        if part is not None:
            first = first or (done, part)
            if part > first[1]:
                total = round((done - first[0]) / (part - first[1]))

    compiling = seconds_of_compiling()
    with status_line(stream, clock) as show:

        def report(done: int, more: str = "") -> None:
            def line(seconds: float) -> str:
                if files:
                    estimate(done)
                # Time spent compiling does not count towards the estimate.
                worked = seconds - (seconds_of_compiling() - compiling)
                return progress_line(item, done, more, total, worked if worked > 0 else seconds)

            show(line)

        yield report


@contextmanager
def steps(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Yield a function that reports finished steps of long work and the time so far."""
    with status_line(stream, clock) as show:
        yield lambda step: show(lambda seconds: f"{step}: done after {duration(seconds)}")


def progress_line(item: str, done: int, more: str, total: int | None, seconds: float) -> str:
    """Return the line that `progress` prints for `done` of `total` items after some seconds."""
    speed = done / seconds
    parts = [f"{counted(done, item)} done", f"{speed:,.{0 if speed >= 10 else 1}f} per second"]
    if more:
        parts.append(more)
    if total is not None and 0 < done < total:
        parts.append(f"{duration((total - done) / speed)} left")
    return ", ".join(parts)


def part_read(files: Sequence[str]) -> float | None:
    """Return the fraction of the bytes of open files that has been read, or None if unknown."""
    try:
        sizes = {os.path.realpath(name): os.stat(name).st_size for name in files}
        read = dict.fromkeys(sizes, 0)
        for entry in Path("/proc/self/fd").iterdir():
            name = os.path.realpath(entry)
            if name in read:
                at = Path("/proc/self/fdinfo", entry.name).read_text().split()[1]
                read[name] = max(read[name], int(at))
    except OSError:
        return None
    # A file that is not open may have been read already or not yet.
    if not sizes or not sum(sizes.values()) or not all(read.values()):
        return None
    return min(1.0, sum(read.values()) / sum(sizes.values()))


def duration(seconds: float) -> str:
    """Format a duration as 50 s, 3 min 20 s or 2 h 05 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def compiling_took(seconds: float) -> str:
    """Return the line that a program prints at its end about the time spent compiling."""
    return _TOOK.format(seconds)


def engine_used(engine: str) -> str:
    """Return the line that a program prints about the engine that it uses, for `engine_in`."""
    return f"engine: {engine}"


def engine_in(log: str) -> str:
    """Return the engine named in the log of a program, or "" if the log names none."""
    named = re.findall(f"^{engine_used('(cpu|cuda)')}$", log, re.MULTILINE)
    return named[-1] if named else ""


def seconds_of_compiling(log: str | None = None) -> float:
    """Return the seconds that this process, or the program that wrote a log, spent compiling."""
    if log is None:
        return sum(_compiling.values())
    before, after = map(re.escape, _TOOK.split("{:.1f}"))
    return sum(map(float, re.findall(f"^{before}([\\d.]+){after}$", log, re.MULTILINE)))


def announce_compilation(
    events: ModuleType, kind: str = "numba:compile", write: Callable[[str], None] = say
) -> None:
    """Print once per process that functions are being compiled, if that takes long.

    Compiled functions are stored, so most runs print nothing. A later run may compile functions for
    another option or for longer reads.

    Parameters
    ----------
    events : module
        Events of the compiler: ``numba.core.event``, or ``numba.cuda.core.event``
        for kernels.
    kind : str
        Kind of the event.
    """
    _compiling[kind] = 0.0
    started: list[float] = []  # including functions compiled because others call them
    announcement: threading.Timer | None = None

    class Announcer(events.Listener):
        def on_start(self, event) -> None:
            nonlocal announcement
            if not started and _compiling[kind] < LONG_TO_COMPILE:
                announcement = threading.Timer(
                    LONG_TO_COMPILE - _compiling[kind], write, [_ANNOUNCEMENT]
                )
                announcement.daemon = True
                announcement.start()
            started.append(time.monotonic())

        def on_end(self, event) -> None:
            taken = time.monotonic() - started.pop()
            if not started:
                _compiling[kind] += taken
                announcement.cancel()

    events.register(kind, Announcer())
