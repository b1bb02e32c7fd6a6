"""Running samtools, from pysam, in separate processes."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bwarp.errors import InputError
from bwarp.runtime.signals import not_ended, undone_if_ended

#: Start of a Python program that calls samtools. pysam puts the output of samtools into its
#: exception; the last line is passed on.
CALL = r"""
import sys, pysam, pysam.samtools
def call(command, *arguments):
    try:
        getattr(pysam.samtools, command)(*arguments, catch_stdout=False)
    except pysam.SamtoolsError as error:
        said = str(error).partition("stderr=")[2].strip("b'\"").replace("\\n", "\n")
        sys.exit(said.strip().splitlines()[-1])
"""

#: If samtools fails and the disk has less free space than this, the disk was full.
_FULL = 1 << 16


@contextmanager
def samtools(
    arguments: list[str], folder: Path, path: str, task: str = "make"
) -> Iterator[subprocess.Popen]:
    """Run samtools in a folder, with pipes to its standard input and output.

    `path` is the file that it makes or reads, for error messages. Reference sequences of a CRAM
    file are looked up only in the folder, by their checksums.
    """
    with ExitStack() as stack:
        with not_ended():
            process = subprocess.Popen(
                [sys.executable, "-c", f"{CALL}call(*sys.argv[1:])", *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=environment(),
            )
            stack.enter_context(undone_if_ended(lambda: (process.kill(), process.wait())))
        try:
            yield process
            process.stdin.close()
        except BrokenPipeError:
            # samtools exited early; its message says why.
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            message = process.stderr.read()
            process.wait()
    if process.returncode:
        raise failure(process.returncode, message, folder, path, task)


def environment() -> dict[str, str]:
    """Return variables with which htslib reads reference sequences from the current folder.

    The files are named by the checksums of the sequences. Files found by REF_PATH are mapped into
    memory, so that processes share them; files found by REF_CACHE would be copied.
    """
    return os.environ | {"REF_CACHE": "", "REF_PATH": "%s"}


def failure(returncode: int, message: bytes, folder: Path, path: str, task: str) -> Exception:
    """Return the error of a process that could not `task` the file `path` in a folder."""
    if shutil.disk_usage(folder).free < _FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    sizes = [entry.stat().st_size for entry in os.scandir(folder) if task == "make"]
    if most in sizes:
        return OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
    reason = " ".join(message.decode(errors="replace").split())[-200:] or f"exit code {returncode}"
    return InputError(f"{path}: samtools could not {task} the file ({reason})")
