"""Write the rows of tables in order: threads format them while the caller finds the next ones.

    caller     find rows 1 | find rows 2 | find rows 3 | ...
    threads                | 1a  1b  1c  | 2a  2b  2c  | ...
    writer                     | 1a 1b 1c    | 2a 2b 2c    | ...

Every program with large tables writes them this way, as text or as columns for Parquet.
"""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress

from bwarp.runtime.timeline import on_timeline, span

#: Rows that a thread formats at a time: few enough to stay in the cache of a core.
ROWS_AT_ONCE = 1 << 14

#: Maximum number of calls of `TableWriter.add` whose rows wait to be formatted.
_MOST_WAITING = 2

Format = Callable[[int, int], object]


class TableWriter(AbstractContextManager):
    """Formats rows in threads, and writes them in the order in which they were added.

    Everything is written when the block ends without an error. An error of a thread is raised by
    the next call or at the end of the block.

    Parameters
    ----------
    write : function
        Takes the formatted rows; called by one thread at a time, such as ``file.write``.
    threads : int
        With a single thread, `add` itself formats and writes.
    """

    def __init__(self, write: Callable[[object], object], threads: int):
        self._write = on_timeline("write")(write)
        self._threads = threads
        self._added: queue.Queue = queue.Queue(_MOST_WAITING)
        self._error: BaseException | None = None
        self._is_wanted = True
        self._writer = threading.Thread(target=self._write_all, daemon=True)
        if threads > 1:
            self._writer.start()

    def add(self, rows_of: Format, count: int, at_once: int = 0) -> None:
        """Write ``rows_of(first, last)`` for consecutive ranges that cover `count` rows.

        Parameters
        ----------
        rows_of : function
            Called in other threads, later; the arrays that it uses must not change.
        at_once : int
            Rows in a range; by default `ROWS_AT_ONCE`.
        """
        ranges = _ranges(count, at_once or ROWS_AT_ONCE)
        if self._threads == 1:
            for first, last in ranges:
                self._write(rows_of(first, last))
            return
        if count > 0:
            with span("wait for the writer"):
                self._hand_on((rows_of, ranges))

    def __exit__(self, kind, *_) -> None:
        if self._threads == 1:
            return
        if kind is not None:
            self._is_wanted = False
            # If the queue is full, the thread does not wait for it, and ends soon.
            with suppress(queue.Full):
                self._added.put_nowait(None)
            # Ctrl-C exits at once, even if the output is a pipe that nobody reads.
            self._writer.join(None if issubclass(kind, Exception) else 0)
            return
        with span("wait for the writer"):
            self._hand_on(None)
            self._writer.join()
        if self._error is not None:
            raise self._error

    def _hand_on(self, rows: tuple[Format, Iterator[tuple[int, int]]] | None) -> None:
        while self._error is None:
            try:
                self._added.put(rows, timeout=0.1)
                return
            except queue.Full:
                continue
        raise self._error

    def _write_all(self) -> None:
        pool = ThreadPoolExecutor(self._threads)
        under_way: deque[Future] = deque()
        try:
            for rows_of, ranges in self._taken(under_way):
                for first, last in ranges:
                    under_way.append(pool.submit(_formatted, rows_of, first, last))
                    if len(under_way) >= 2 * self._threads:
                        self._write_first(under_way)
            while under_way:
                self._write_first(under_way)
        except BaseException as error:  # noqa: BLE001
            self._error = error
        pool.shutdown(cancel_futures=True)

    def _taken(self, under_way: deque[Future]) -> Iterator[tuple[Format, Iterator]]:
        """Yield what was added; while there is nothing new, write what is under way."""
        while True:
            try:
                added = self._added.get(timeout=0 if under_way else 0.1)
            except queue.Empty:
                if under_way:
                    self._write_first(under_way)
                elif not self._is_wanted:
                    raise _NotWantedError from None
                continue
            if added is None:
                return
            yield added

    def _write_first(self, under_way: deque[Future]) -> None:
        if not self._is_wanted:
            raise _NotWantedError
        with span("wait for other threads"):
            rows = under_way.popleft().result()
        self._write(rows)


class _NotWantedError(Exception):
    """Ends the thread after an error elsewhere, which is the one to report."""


@on_timeline("format rows")
def _formatted(rows_of: Format, first: int, last: int) -> object:
    return rows_of(first, last)


def _ranges(count: int, at_once: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, at_once):
        yield first, min(first + at_once, count)
