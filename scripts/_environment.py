"""Imported first by every program: errors during start-up become one-line messages.

Importing takes a second or more. A signal during this time ends the program with the usual exit
code; there is nothing to clean up. If Python lacks packages, or memory for them, one line says what
to do.
"""

import importlib
import os
import shlex
import sys
from pathlib import Path

__all__ = []


def _what_to_type() -> str:
    """Return the typed command for the Python of the checkout, after the way to install it."""
    environment = Path(__file__).resolve().parent.parent / ".venv"
    command = shlex.join([os.path.relpath(environment / "bin/python"), *sys.argv])
    if (environment / "bin/python").exists() and Path(sys.prefix) != environment:
        return f"type {command}"
    return (
        f"type make doctor in {environment.parent}, which installs what is missing, then {command}"
    )


try:
    starting = importlib.import_module("bwarp.cli.starting")
    if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:
        starting.guard()
    importlib.import_module("bwarp.cli.program")
except ImportError as error:
    if "failed to map segment" in str(error):
        raise
    # Numba itself rejects a NumPy that is too new.
    print(f"{Path(sys.argv[0]).name}: error: {error}: {_what_to_type()}", file=sys.stderr)
    sys.exit(2)
