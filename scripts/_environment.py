"""Imported first by every program: what ends it before it begins is told in one line.

Importing takes a second or more. A signal in that time ends the program with its code, and nothing
is there to be undone; where Python lacks packages, or memory for them, a line says what to do.
"""

import importlib
import os
import shlex
import signal
import sys
from pathlib import Path

__all__ = []


def _end(number: int, _frame) -> None:
    os._exit(128 + number)


def _end_at_signals() -> None:
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end)


def _explain(kind, error, trace) -> None:
    """Say in a line that there is not the memory to import; `run_program` explains what follows."""
    text = " ".join(str(error).split())
    no_room = kind in (MemoryError, OSError) or "failed to map segment" in text
    if not no_room or "--debug" in sys.argv:
        sys.__excepthook__(kind, error, trace)
        return
    print(
        f"{Path(sys.argv[0]).name}: error: Python cannot load its packages "
        f"({text[:80] or 'out of memory'}): give the job more memory",
        file=sys.stderr,
    )


def _what_to_type() -> str:
    """The command that was typed, for the Python of the checkout, and how to get one."""
    environment = Path(__file__).resolve().parent.parent / ".venv"
    command = shlex.join([os.path.relpath(environment / "bin/python"), *sys.argv])
    if (environment / "bin/python").exists() and Path(sys.prefix) != environment:
        return f"type {command}"
    return f"type make doctor in {environment.parent}, which brings what is missing, then {command}"


if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:
    _end_at_signals()
    sys.excepthook = _explain

try:
    importlib.import_module("bwarp.program")
except ImportError as error:
    if "failed to map segment" in str(error):
        raise
    # Numba itself refuses a NumPy that is too new.
    print(f"{Path(sys.argv[0]).name}: error: {error}: {_what_to_type()}", file=sys.stderr)
    sys.exit(2)
