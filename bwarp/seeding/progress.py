"""How far a search is, on standard error: a line rewritten on a terminal, now and then in a log."""

import sys
import time
from typing import TextIO

__all__ = ["Progress"]

#: Seconds between two reports.
ON_A_TERMINAL, IN_A_LOG = 1.0, 10.0


class Progress:
    """Reports k-mers done, k-mers a second and hits.

    >>> progress = Progress()
    >>> progress.report(1_000_000, 25_000)  # says something if it is time to
    """

    def __init__(self, stream: TextIO | None = None, clock=time.monotonic):
        self._stream = stream or sys.stderr
        self._clock = clock
        self._on_terminal = self._stream.isatty()
        self._every = ON_A_TERMINAL if self._on_terminal else IN_A_LOG
        self._start = self._last = clock()
        self._line = ""

    def report(self, kmers: int, hits: int) -> None:
        """Say how much is done, if the last report is long enough ago."""
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last = now
        speed = kmers / (now - self._start)
        line = f"{kmers:,} k-mers done, {speed:,.0f} a second, {hits:,} hits"
        if self._on_terminal:
            self._stream.write("\r" + line.ljust(len(self._line)))
            self._line = line
        else:
            self._stream.write(line + "\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._line:
            self._stream.write("\r" + " " * len(self._line) + "\r")
            self._stream.flush()
            self._line = ""
