"""samtools, which pysam brings, in a process of its own that is written to and read from."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bwarp.errors import BwarpError
from bwarp.runtime.signals import not_ended, undone_if_ended

__all__ = ["samtools"]

# pysam puts what samtools prints into its exception; the last line of that is passed on.
_RUN = r"""
import sys, pysam, pysam.samtools
try:
    getattr(pysam.samtools, sys.argv[1])(*sys.argv[2:], catch_stdout=False)
except pysam.SamtoolsError as error:
    said = str(error).partition("stderr=")[2].strip("b'\"").replace("\\n", "\n")
    sys.exit(said.strip().splitlines()[-1])
"""

#: A disk with less room than this after samtools failed is why it failed.
_FULL = 1 << 16


@contextmanager
def samtools(
    arguments: list[str], folder: Path, path: str, task: str = "make"
) -> Iterator[subprocess.Popen]:
    """Run samtools in a folder, with pipes to its standard input and output.

    `path` is what it helps to make, or to read, to be named when it fails. Sequences that a
    CRAM file needs are looked for in the folder, under their checksums, and nowhere else.
    """
    with ExitStack() as stack:
        with not_ended():
            process = subprocess.Popen(
                [sys.executable, "-c", _RUN, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=os.environ | {"REF_CACHE": "%s", "REF_PATH": "%s"},
            )
            stack.enter_context(undone_if_ended(lambda: (process.kill(), process.wait())))
        try:
            yield process
            process.stdin.close()
        except BrokenPipeError:
            # samtools ended before us, and says why.
            pass
        except BaseException:
            process.kill()
            raise
        finally:
            message = process.stderr.read().decode(errors="replace").strip()
            process.wait()
    if process.returncode:
        if shutil.disk_usage(folder).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        reason = " ".join(message.split())[-200:] or f"exit code {process.returncode}"
        raise BwarpError(f"{path}: samtools could not {task} it ({reason})")
