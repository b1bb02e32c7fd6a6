"""Fast start and exit of a program, with one-line messages if either fails.

Importing takes half a second. A signal during that time ends the program with its exit code; there
is nothing to clean up. If there is too little memory to import packages, a one-line message says
what to do.
"""

import contextlib
import gc
import os
import signal
import sys

from bwarp.cli.subcommands import subcommand_name
from bwarp.errors import MEMORY
from bwarp.gpu.device import begin_cuda
from bwarp.runtime.progress import LONG_TO_COMPILE, compiling_took, say, seconds_of_compiling

#: Whether this process runs a single program, that is, `guard` was called.
_is_program = False


def guard() -> None:
    """Handle signals and a lack of memory until `run_program` takes over.

    If the program is likely to use a GPU, start the driver in the background.

    Disable garbage collection until `begin_work`: imported objects stay, and collecting repeatedly
    among them takes a tenth of the time.
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
    """Enable garbage collection again, except for imported objects.

    Do nothing in a process that does more than run a program.
    """
    if _is_program:
        gc.freeze()
        gc.enable()


def leave() -> None:
    """Exit at once after the work is done; do nothing in a process that does more.

    Python's own shutdown takes a third of a second. With --debug it runs, so that a profiler can
    write its results when Python exits.
    """
    if not _is_program or "--debug" in sys.argv:
        return
    if seconds_of_compiling() > LONG_TO_COMPILE:
        say(compiling_took(seconds_of_compiling()))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError):  # closed or missing
            stream.flush()
    os._exit(0)


def _end(number: int, _frame) -> None:
    os._exit(128 + number)


def _explain(kind, error, trace) -> None:
    """Report a lack of memory for imports in one line; `run_program` explains later errors."""
    text = " ".join(str(error).split())
    no_room = kind in (MemoryError, OSError) or "failed to map segment" in text
    if not no_room or "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
        return
    print(
        f"{os.path.basename(sys.argv[0])}: error: Python cannot load its packages "
        f"({text[:80] or 'out of memory'}): give the job more memory",
        file=sys.stderr,
        flush=True,
    )
    os._exit(MEMORY)
