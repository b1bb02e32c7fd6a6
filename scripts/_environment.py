"""Imported first by every program: where its Python lacks packages, one line says what to type."""

import importlib
import os
import shlex
import sys
from pathlib import Path

__all__ = []


def _what_to_type() -> str:
    """The command that was typed, for the Python of the checkout, and how to get one."""
    environment = Path(__file__).resolve().parent.parent / ".venv"
    command = shlex.join([os.path.relpath(environment / "bin/python"), *sys.argv])
    if (environment / "bin/python").exists() and Path(sys.prefix) != environment:
        return f"type {command}"
    return f"type make doctor in {environment.parent}, which brings what is missing, then {command}"


try:
    importlib.import_module("bwarp.program")
except ImportError as error:
    # Numba itself refuses a NumPy that is too new.
    print(f"{Path(sys.argv[0]).name}: error: {error}: {_what_to_type()}", file=sys.stderr)
    sys.exit(2)
