"""What goes wrong in a program, as the user is told it: a sentence, and an exit code."""

import errno

from bwarp.errors import BwarpError
from bwarp.runtime.backend import is_gpu_memory_error

__all__ = ["explanation"]


def explanation(error: BaseException) -> tuple[str, int] | None:
    """One sentence and the exit code for an error; None for one that is a bug of ours."""
    if isinstance(error, BwarpError):
        return str(error), error.exit_code
    sentence = _sentence(error)
    return None if sentence is None else (sentence, 1)


def _sentence(error: BaseException) -> str | None:
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return "out of memory: give the job more, or a smaller input"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "no room for one more thread: give the job more memory, or fewer --threads"
    if isinstance(error, OSError):
        return _os_error_sentence(error)
    if isinstance(error, ModuleNotFoundError):
        return f"the Python package {error.name} is needed for this: pip install {error.name}"
    if is_gpu_memory_error(error):
        return "the GPU is out of memory: end what else runs on it, or use --backend cpu"
    return None


def _os_error_sentence(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{where}the disk is full: free some space, or write elsewhere, and run again"
    if error.errno == errno.EFBIG:
        return (
            f"{where}larger than files may be here: raise the limit (ulimit -f), or write elsewhere"
        )
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return f"{where}no permission: choose a folder or file you may use"
    if error.errno == errno.ENOENT:
        return f"{where}no such file or folder: check the path"
    if error.errno == errno.EBADF:
        return f"{where}standard input or output is closed: give the name of a file"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{where}too many files are open at once: raise the limit (ulimit -n)"
    if error.errno == errno.ENAMETOOLONG:
        return f"{where}the name is too long: choose a shorter one (a run adds up to 20 characters)"
    if error.errno == errno.EISDIR:
        return f"{where}is a folder where a file is wanted"
    if error.errno == errno.ENOTDIR:
        return f"{where}a part of this path is a file, not a folder"
    return f"{where}{error.strerror or error}"
