"""SAM as it is written, or BAM, sorted or not, made of it by samtools (which pysam brings)."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bwarp.errors import BwarpError, UsageError
from bwarp.output import atomic_file, private_folder

__all__ = ["alignment_file", "samtools"]

# pysam keeps what samtools says for its exception, as Python text; its last line is passed on.
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
def alignment_file(path: str, header: bytes, sort: bool, threads: int) -> Iterator[IO[bytes]]:
    """Open an output for SAM text; what lies there at the end has the form its name says.

    A sorted BAM gets its index beside it. Nothing appears under the final names before it is done.
    """
    ending = Path(path).suffix
    if path != "-" and ending not in (".sam", ".bam"):
        raise UsageError(f"{path}: the output must end in .sam or .bam, or be - for SAM to stdout")
    if ending != ".bam" and not sort:
        with atomic_file(path) as file:
            file.write(header)
            yield file
        return
    if path == "-":
        raise UsageError("--sort needs a file: give -o OUT.bam or OUT.sam")
    with private_folder(path) as folder:
        made = str(folder / f"out{ending}")
        kind = ["sort", "-O", ending[1:], "-T", str(folder / "run")] if sort else ["view", "-b"]
        with samtools([*kind, "--no-PG", "-@", str(threads - 1), "-o", made, "-"], path) as text:
            text.write(header)
            yield text
        final = os.path.realpath(path)
        if sort and ending == ".bam":
            with samtools(["index", "-@", str(threads - 1), made, f"{made}.bai"], path):
                pass
            os.replace(f"{made}.bai", f"{final}.bai")
        os.replace(made, final)


@contextmanager
def samtools(arguments: list[str], path: str) -> Iterator[IO[bytes]]:
    """Run samtools in a process of its own, with a pipe to write to; `path` is what it makes."""
    command = [sys.executable, "-c", _RUN, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process.stdin
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
        if shutil.disk_usage(Path(path).parent).free < _FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        last = message.splitlines()[-1] if message else f"exit code {process.returncode}"
        raise BwarpError(f"{path}: {last}")
