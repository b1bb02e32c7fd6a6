"""How far a program is, on standard error: a line rewritten on a terminal, now and then in a log.

    1,310,720 reads done, 512,400 a second, 98.7 % mapped, 3 min 20 s left

The time left is known where the number of items is, or where the input files have a size: how far
a file has been read is asked of the system, so that no reader has to tell.
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

#: Seconds between two reports.
ON_A_TERMINAL, IN_A_LOG = 1.0, 10.0

#: Compiling for fewer seconds than this is not worth a line.
LONG_TO_COMPILE = 1.0

_ANNOUNCEMENT = (
    "compiling for this machine, what no run has needed before "
    "(bwarp compile does it for all programs and options at once)"
)

#: At the end of a program; the seconds are no part of what its work takes.
_TOOK = "compiling for this machine, which later runs need not, took {:.1f} s"

#: Seconds that compilers have taken in this process, by what they call their work.
_compiling: dict[str, float] = {}

#: To the line's start, and all of it wiped out.
_WIPE = "\r\x1b[K"


#: Whether only warnings and errors are written.
_quiet = False


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Write no progress within the block, only warnings and errors; or all as ever."""
    global _quiet
    before, _quiet = _quiet, quiet
    try:
        yield
    finally:
        _quiet = before


def say(message: str, stream: TextIO | None = None) -> None:
    """Write one line of progress, or a warning, to standard error at once."""
    if not _quiet or message.startswith("warning: "):
        write_line(message, stream)


def write_line(message: str, stream: TextIO | None = None) -> None:
    """Write a message to standard error at once, in place of a line of progress.

    Names of files and sequences may hold escape sequences of terminals: these are shown, not sent.
    """
    stream = stream or sys.stderr
    wipe = _WIPE if on_terminal(stream) else ""
    print(wipe + _escaped(message), file=stream, flush=True)


def _escaped(message: str) -> str:
    """A message with the characters that a terminal would act on as Python writes them."""
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape").decode()
        for letter in message
    )


def on_terminal(stream: TextIO) -> bool:
    """Whether somebody looks at a stream, on something that can wipe out a line."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@contextmanager
def status_line(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Callable[[float], str]], None]]:
    """Yield a function that shows a line where the last one was shown long enough ago.

    It is given a function that makes the line from the seconds since the beginning.
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
    """Yield a function that says how much is done, where the last time is long enough ago.

    Parameters
    ----------
    item : str
        What is counted, in the singular.
    total : int, optional
        How many there are.
    files : sequence of str
        The input, where `total` is not known.

    Examples
    --------
    >>> with progress("read", files=["reads.fq.gz"]) as report:
    ...     report(65_536, "98.7 % mapped")  # says something if it is time to
    """
    first = None

    def estimate(done: int) -> None:
        # Readers are ahead of what is done by about as much all the time, so it is the items
        # between two looks that tell how many a file has.
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
                # Compiling tells nothing of how long the rest takes.
                worked = seconds - (seconds_of_compiling() - compiling)
                return progress_line(item, done, more, total, worked if worked > 0 else seconds)

            show(line)

        yield report


@contextmanager
def steps(
    stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str], None]]:
    """Yield a function that says which step of long work is done, and how long that took."""
    with status_line(stream, clock) as show:
        yield lambda step: show(lambda seconds: f"{step}: done after {duration(seconds)}")


def progress_line(item: str, done: int, more: str, total: int | None, seconds: float) -> str:
    """What `progress` says when so many items, of so many, were done in some seconds."""
    speed = done / seconds
    parts = [f"{counted(done, item)} done", f"{speed:,.{0 if speed >= 10 else 1}f} a second"]
    if more:
        parts.append(more)
    if total is not None and 0 < done < total:
        parts.append(f"{duration((total - done) / speed)} left")
    return ", ".join(parts)


def part_read(files: Sequence[str]) -> float | None:
    """Which part of the bytes of some open files has been read; None where that is unknown."""
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
    # A file that is not open has been read, or will be after the others: one cannot tell.
    if not sizes or not sum(sizes.values()) or not all(read.values()):
        return None
    return min(1.0, sum(read.values()) / sum(sizes.values()))


def duration(seconds: float) -> str:
    """A time for people: 50 s, 3 min 20 s, 2 h 05 min."""
    seconds = round(seconds)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02} s"
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def compiling_took(seconds: float) -> str:
    """What a program says at its end if it has compiled for some seconds."""
    return _TOOK.format(seconds)


def seconds_of_compiling(log: str | None = None) -> float:
    """The seconds in which this process has compiled, or the program did that wrote a log."""
    if log is None:
        return sum(_compiling.values())
    before, after = map(re.escape, _TOOK.split("{:.1f}"))
    return sum(map(float, re.findall(f"^{before}([\\d.]+){after}$", log, re.MULTILINE)))


def announce_compilation(
    events: ModuleType, kind: str = "numba:compile", write: Callable[[str], None] = say
) -> None:
    """Say once in this process that functions are being compiled, while that takes its time.

    Compiled functions are kept between runs, so most runs say nothing. A later one may: another
    option, or longer reads, may take a way that no run has taken before.

    Parameters
    ----------
    events : module
        Where the compiler says what it does: ``numba.core.event``, or ``numba.cuda.core.event``
        for kernels.
    kind : str
        What it calls its work there.
    """
    _compiling[kind] = 0.0
    started: list[float] = []  # of functions that are compiled because others call them, too
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
