"""SAM, BAM or CRAM of mapped reads, sorted or not.

SAM as it comes and BAM are written here; what else there is samtools (which pysam brings) makes of
our BAM, which it reads from a pipe.
"""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from bwarp import __version__
from bwarp.bam.bam_file import bam_file, indexed_bam_file, uncompressed_bam
from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.header import BamHeader
from bwarp.bam.sorting import RecordSorter
from bwarp.errors import BwarpError, UsageError
from bwarp.mapping.alignment_records import AlignmentRecords
from bwarp.mapping.bam_records import bam_records
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.read_chunks import ReadChunk
from bwarp.mapping.record_text import contig_names
from bwarp.mapping.sam_lines import sam_header, sam_lines
from bwarp.output import atomic_file, private_folder
from bwarp.reference import Reference

__all__ = ["AlignmentOutput", "alignment_file", "default_sort_bytes", "samtools"]

Write = Callable[[ReadChunk, np.ndarray, AlignmentRecords], None]

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

_ENDINGS = (".sam", ".bam")
_INDEX_ENDINGS = (".bai", ".csi")


@dataclass(frozen=True)
class AlignmentOutput:
    """What a run writes.

    Attributes
    ----------
    path : str
        Its ending says the form; - is SAM to standard output.
    sort : bool
        By position; a BAM gets an index.
    read_group : str or None
        The header's line of the reads' group.
    read_group_id : bytes
        The group that every read names; empty for none.
    sort_bytes : int
        Records kept in memory while they are sorted; more go to disk, beside the output.
    """

    path: str
    sort: bool
    read_group: str | None
    read_group_id: bytes
    sort_bytes: int


def default_sort_bytes(threads: int) -> int:
    """Half a gigabyte a thread, but no more than a quarter of the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(threads << 29, memory // 4)


@contextmanager
def alignment_file(
    output: AlignmentOutput, reference: Reference, genome: Genome, threads: int
) -> Iterator[Write]:
    """Yield a function that writes the lines of a chunk: `write(chunk, both, records)`.

    Nothing appears under the final names before it is complete.
    """
    ending = Path(output.path).suffix
    if output.path != "-" and ending not in _ENDINGS:
        raise UsageError(
            f"{output.path}: the output must end in .sam or .bam, or be - for SAM to stdout"
        )
    if output.path == "-" and output.sort:
        raise UsageError("--sort needs a file: give -o OUT.bam or OUT.sam")
    names = contig_names(reference)
    order = "SO:coordinate" if output.sort else "SO:unsorted\tGO:query"
    text = sam_header(reference, __version__, output.read_group, order)
    shared = (genome, names)
    if ending != ".bam" and not output.sort:
        with atomic_file(output.path) as file:
            file.write(text)

            def write_lines(chunk, both, records) -> None:
                lines = sam_lines(*shared, chunk, both, records, output.read_group_id, threads)
                for part in lines:
                    file.write(part)

            yield write_lines
        return
    lengths = np.diff(reference.contig_starts)
    has_bases = np.flatnonzero(lengths)
    header = BamHeader(
        text,
        tuple(reference.names[contig].encode() for contig in has_bases),
        tuple(lengths[has_bases].tolist()),
    )
    with _record_file(output, header, threads) as add:

        def write_records(chunk, both, records) -> None:
            for part in bam_records(*shared, chunk, both, records, output.read_group_id, threads):
                add(part)

        yield write_records


@contextmanager
def _record_file(output: AlignmentOutput, header: BamHeader, threads: int):
    """Yield a function that adds records; what they become appears when all are there."""
    with private_folder(output.path) as folder:
        made = folder / f"out{Path(output.path).suffix}"
        if output.sort:
            sorter = RecordSorter(folder, header.contig_starts, output.sort_bytes, threads)
            yield sorter.add
            with _sorted_file(output.path, made, header, threads) as writer:
                sorter.finish(writer)
        else:
            with open(made, "wb") as file, bam_file(file, header, threads) as writer:
                yield lambda records: writer.write(records.data, records.starts)
        _put_in_place(made, os.path.realpath(output.path))


@contextmanager
def _sorted_file(path: str, made: Path, header: BamHeader, threads: int) -> Iterator[BlockWriter]:
    """Yield a writer for records in order."""
    if made.suffix == ".bam":
        with indexed_bam_file(made, header, threads) as writer:
            yield writer
        return
    arguments = ["view", "-h", "--no-PG", "-@", str(threads - 1), "-o", str(made), "-"]
    with (
        samtools(arguments, path) as pipe,
        uncompressed_bam(pipe, header, threads) as writer,
    ):
        yield writer


def _put_in_place(made: Path, final: str) -> None:
    """Give a file and its index their final names; an older file's index goes."""
    for ending in _INDEX_ENDINGS:
        if os.path.exists(f"{made}{ending}"):
            os.replace(f"{made}{ending}", f"{final}{ending}")
        else:
            Path(f"{final}{ending}").unlink(missing_ok=True)
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
