"""Errors that the user can correct: in the options, or in the input.

Every message is one sentence that says what is wrong, where (file, line or record, value), and what
to type or do instead. Programs print it as their last line and exit with `exit_code`.
"""

import errno

#: Exit codes of all programs besides 0; 128 and more are signals, as in a shell.
DATA, USAGE, MEMORY, DISK = 1, 2, 3, 4

#: Numbers of the system errors of writing that more room would prevent.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

#: What to do if a package cannot be imported; Numba, for example, refuses a NumPy that is too new.
INSTALL_AGAIN = "install bwarp again with its dependencies; in its checkout, type make doctor"

#: Modules that only some programs import, and the extras that install their packages.
EXTRAS = {"yaml": "report", "pyarrow": "parquet"}


def missing_package(module: str) -> str:
    """Return a sentence about a module that cannot be found, with what to type."""
    wanted = f"'bwarp[{EXTRAS[module]}]'" if module in EXTRAS else module
    return f"the Python package {module} is required: pip install {wanted}"


class InputError(Exception):
    """Something that the user can correct, such as the contents of a file; never a bug in bwarp."""

    exit_code = DATA


class UsageError(InputError):
    """An option or a config value cannot be used."""

    exit_code = USAGE


class TooLittleMemoryError(UsageError):
    """The host or the GPU has too little memory for the request."""

    exit_code = MEMORY


class GpuMemoryError(TooLittleMemoryError):
    """The GPU has too little memory; `reason` is the message without the remedy."""

    def __init__(self, reason: str):
        super().__init__(f"{reason}: use --backend cpu, or a GPU with more memory")
        self.reason = reason
