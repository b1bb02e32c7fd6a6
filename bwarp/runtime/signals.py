"""End a program at once at Ctrl-C, SIGTERM or a closed terminal, and leave no partial files.

Python raises an exception in the main thread for signals. That comes late if the thread is in
compiled code, and is printed and ignored in callbacks from C code or in destructors, so that the
program continues. Therefore a separate thread waits for signals, undoes unfinished work and ends
the process:

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

#: The shell reports these signals as the exit codes 129, 130 and 143.
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)

#: Held while the list of undo functions changes, and for ever by the thread that ends the process.
_lock = threading.RLock()
_to_undo: list[Callable[[], object]] = []
_has_outputs = False


@contextmanager
def undone_if_ended(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if a signal ends the process within the block.

    It is called in another thread while the threads of the program continue.
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
    """Delay signals until the end of the block."""
    with _lock:
        yield


@contextmanager
def naming_outputs() -> Iterator[None]:
    """Like `not_ended`, for a block that gives outputs their final names."""
    global _has_outputs
    with _lock:
        yield
        _has_outputs = True


@contextmanager
def ended_by_signals(program: str) -> Iterator[None]:
    """End the process at signals within the block, with exit code 128 plus the signal's number.

    Call it in the main thread. Signals that the process ignores from its start, as under `nohup`,
    are ignored.
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
        # The thread reads earlier signals first, so none is lost.
        os.write(writing, b"\0")
        thread.join()
        os.close(reading)
        os.close(writing)


def _wait(reading: int, program: str) -> None:
    """End the process at the first signal; return when a zero is read."""
    number = os.read(reading, 1)[0]
    while number and number not in _SIGNALS:
        number = os.read(reading, 1)[0]
    if not number:
        return
    _lock.acquire()
    for undo in reversed(_to_undo):
        with contextlib.suppress(OSError):
            undo()
    outcome = "interrupted: no output file was written"
    if _has_outputs:
        outcome = "interrupted: completed outputs were kept"
    with contextlib.suppress(OSError, ValueError):
        write_line(f"{program}: error: {outcome}")
    # A normal exit would wait for threads in compiled code.
    os._exit(128 + number)
