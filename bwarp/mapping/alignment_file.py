"""SAM as it is written, or BAM, sorted or not, made of it by samtools (which pysam brings)."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from bwarp.errors import BwarpError, UsageError
from bwarp.output import atomic_file

__all__ = ["alignment_file"]

_RUN = "import sys, pysam.samtools as s; getattr(s, sys.argv[1])(*sys.argv[2:], catch_stdout=False)"


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
    with TemporaryDirectory(prefix=f".{Path(path).name}.", dir=Path(path).parent) as folder:
        made = Path(folder, f"out{ending}")
        arguments = ["sort", "-T", str(Path(folder, "run"))] if sort else ["view", "-b", "--no-PG"]
        if sort:
            arguments += ["--no-PG", "-O", ending[1:]]
        arguments += ["-@", str(max(threads - 1, 0)), "-o", str(made), "-"]
        with _samtools(arguments, path) as process:
            process.stdin.write(header)
            yield process.stdin
        if sort and ending == ".bam":
            with _samtools(["index", str(made), str(made) + ".bai"], path):
                pass
            os.replace(str(made) + ".bai", f"{path}.bai")
        os.replace(made, path)


@contextmanager
def _samtools(arguments: list[str], path: str) -> Iterator[subprocess.Popen]:
    command = [sys.executable, "-c", _RUN, *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
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
        last = message.splitlines()[-1] if message else f"exit code {process.returncode}"
        raise BwarpError(f"{path}: samtools {arguments[0]} failed: {last}")
