"""What ends a program before it begins: a signal, or too little memory, while it imports.

Importing takes a second or more. A signal in that time ends the program with its code, and nothing
is there to be undone; where there is no memory for Python's packages, a line says what to do.
"""

import os
import signal
import sys

__all__ = ["guard"]


def guard() -> None:
    """End at signals, and explain a lack of memory, until `run_program` sees to both."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)
    sys.excepthook = _explain


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
