"""Turn an error that ends a program into a sentence for the user and an exit code."""

import errno

from bwarp.errors import (
    DATA,
    DISK,
    INSTALL_AGAIN,
    MEMORY,
    NO_ROOM,
    USAGE,
    InputError,
    missing_package,
)
from bwarp.runtime.backend import is_gpu_memory_error

_FULL = "the disk is full: free some space, or write elsewhere, and run again"
_NOT_ALLOWED = "no permission: choose a file or folder that you can access"
_TOO_MANY = "too many files are open at once: raise the limit (ulimit -n)"

#: Messages for system errors by number, printed after the file's name.
_OF_NUMBER = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the file is larger than allowed: raise the limit (ulimit -f), or write elsewhere",
    errno.EACCES: _NOT_ALLOWED,
    errno.EROFS: _NOT_ALLOWED,
    errno.EPERM: _NOT_ALLOWED,
    errno.ENOENT: "no such file or folder: check the path",
    errno.EBADF: "standard input or output is closed: give the name of a file",
    errno.EMFILE: _TOO_MANY,
    errno.ENFILE: _TOO_MANY,
    errno.ENAMETOOLONG: "the name is too long: choose a shorter one (bwarp adds up to 20 "
    "characters)",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTDIR: "part of the path is a file, not a folder",
}


def explanation(error: BaseException) -> tuple[str, int] | None:
    """Return a sentence and the exit code for an error, or None if it is a bug of bwarp."""
    if isinstance(error, InputError):
        return str(error), error.exit_code
    for kind, code in ((_memory_sentence, MEMORY), (_package_sentence, USAGE), (_sentence, DATA)):
        sentence = kind(error)
        if sentence is not None:
            return sentence, DISK if getattr(error, "errno", None) in NO_ROOM else code
    return None


def _memory_sentence(error: BaseException) -> str | None:
    no_room = isinstance(error, ImportError) and "failed to map segment" in str(error)
    if no_room or isinstance(error, MemoryError) or getattr(error, "errno", 0) == errno.ENOMEM:
        return "out of memory: give the job more memory, or use a smaller input"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "cannot start another thread: give the job more memory, or use fewer --threads"
    if is_gpu_memory_error(error):
        return "the GPU is out of memory: stop other programs that use it, or use --backend cpu"
    return None


def _package_sentence(error: BaseException) -> str | None:
    """Return a sentence about an installed package that cannot be imported, such as Numba."""
    is_there = isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError)
    return f"{error}: {INSTALL_AGAIN}" if is_there else None


def _sentence(error: BaseException) -> str | None:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return where + (_OF_NUMBER.get(error.errno) or error.strerror or str(error))
    if isinstance(error, ModuleNotFoundError):
        return missing_package(error.name)
    return None
