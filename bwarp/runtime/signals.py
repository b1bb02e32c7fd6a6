"""Ctrl-C, a scheduler's SIGTERM and a closed terminal end a program at once, and leave nothing.

Python raises an exception in the main thread for them. That comes late where the thread is deep in
compiled code; where it comes up in a function that C code has called back, or in a destructor, it
is printed and forgotten, and the program runs on to its end. So here a thread waits for signals.
It undoes what is half done and ends the process itself:

    with undone_if_ended(remove_part):
        with not_ended():               what is made ...
            make_part()
        write_part()
        with naming_outputs():          ... and not finished is undone when a signal comes
            os.replace(part, path)
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bwarp.runtime.progress import write_line

#: Where nobody catches them, the shell calls the ends by these 129, 130 and 143.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

#: Held while what may be undone changes, and for ever by who ends the process.
_lock = threading.RLock()
_to_undo: list[Callable[[], object]] = []
_has_outputs = False


@contextmanager
def undone_if_ended(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if a signal ends the process within the block.

    It is called in another thread, while those of the program go on.
    """
    with _lock:
        _to_undo.append(undo)
    try:
        yield
    finally:
        with _lock:
            _to_undo.remove(undo)


@contextmanager
def not_ended() -> Iterator[None]:
    """Let signals wait for the end of the block."""
    with _lock:
        yield


@contextmanager
def naming_outputs() -> Iterator[None]:
    """`not_ended` for a block that gives outputs their final names."""
    global _has_outputs
    with _lock:
        yield
        _has_outputs = True


@contextmanager
def ended_by_signals(program: str) -> Iterator[None]:
    """Within the block, which the main thread is in, signals end the process with 128 and theirs.

    A signal that the process was started to ignore, as `nohup` does, is ignored.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    thread = threading.Thread(target=_wait, args=(reading, program), daemon=True)
    thread.start()
    before_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    before = {
        number: signal.signal(number, lambda *_: None)
        for number in _SIGNALS
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        signal.set_wakeup_fd(before_fd)
        # The thread reads what came before first: no signal is lost.
        os.write(writing, b"\0")
        thread.join()
        os.close(reading)
        os.close(writing)


def _wait(reading: int, program: str) -> None:
    """End the process at the first signal; return at a zero."""
    number = os.read(reading, 1)[0]
    while number and number not in _SIGNALS:
        number = os.read(reading, 1)[0]
    if not number:
        return
    _lock.acquire()
    for undo in reversed(_to_undo):
        with contextlib.suppress(OSError):
            undo()
    outcome = "interrupted; no output was written under its final name"
    if _has_outputs:
        outcome = "interrupted; of the outputs those are there that were whole"
    with contextlib.suppress(OSError, ValueError):
        write_line(f"{program}: error: {outcome}")
    # Threads deep in compiled code would be waited for.
    os._exit(128 + number)
