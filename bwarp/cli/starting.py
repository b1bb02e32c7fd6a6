"""How a program starts and ends: quickly, and whatever happens meanwhile is said in a line.

Importing takes half a second. A signal in that time ends the program with its code, and nothing
is there to be undone; where there is no memory for Python's packages, a line says what to do.
"""

import contextlib
import gc
import os
import signal
import sys

from bwarp.cli.subcommands import subcommand_name
from bwarp.gpu.device import begin_cuda
from bwarp.runtime.progress import LONG_TO_COMPILE, compiling_took, say, seconds_of_compiling

#: Whether this process is one program and nothing else: `guard` was called.
_is_program = False


def guard() -> None:
    """End at signals, and explain a lack of memory, until `run_program` sees to both.

    Where the program is likely to use a GPU, that starts meanwhile.

    Until `begin_work` Python does not look for garbage, either: what importing makes is there to
    stay, and to look through it again and again takes a tenth of the time.
    """
    global _is_program
    _is_program = True
    gc.disable()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    sys.excepthook = _explain
    begin_cuda(subcommand_name(), sys.argv[1:])


def begin_work() -> None:
    """Let Python look for garbage again, but not in what was imported.

    In a process that is more than a program, do nothing.
    """
    if _is_program:
        gc.freeze()
        gc.enable()


def leave() -> None:
    """End a program that has done its work, at once; in a process that is more, do nothing.

    Python would first take apart all that it has loaded, which takes a third of a second. With
    --debug it does, for a profiler that writes what it saw when Python ends.
    """
    if not _is_program or "--debug" in sys.argv:
        return
    if seconds_of_compiling() > LONG_TO_COMPILE:
        say(compiling_took(seconds_of_compiling()))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError):  # closed, or there is none
            stream.flush()
    os._exit(0)


def _end(number: int, _frame) -> None:
    os._exit(128 + number)


def _explain(kind, error, trace) -> None:
    """Say in a line that there is not the memory to import; `run_program` explains what follows."""
    text = " ".join(str(error).split())
    no_room = kind in (MemoryError, OSError) or "failed to map segment" in text
    if not no_room or "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
        return
    print(
        f"{os.path.basename(sys.argv[0])}: error: Python cannot load its packages "
        f"({text[:80] or 'out of memory'}): give the job more memory",
        file=sys.stderr,
    )
