"""Files of sorted records: indexed BAM, CRAM or SAM, with duplicates marked or not.

                .-> our BAM
sorted records -+-> samtools view    -> SAM or CRAM
                '-> samtools markdup -> SAM or CRAM, or its records into our BAM
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bwarp.errors import InputError
from bwarp.io.bam.bam_file import indexed_bam_file, uncompressed_bam
from bwarp.io.bam.bgzf import read_bgzf
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.bam.header import BamHeader, split_header
from bwarp.io.bam.merging import whole_records
from bwarp.io.bam.samtools_process import samtools
from bwarp.options.mapping import CRAM_VERSIONS

__all__ = ["duplicates_marked", "sorted_file"]

#: htslib learns how to compress CRAM from what it has done: with more threads it is another order.
_CRAM_THREADS = "1"

#: How far apart samtools markdup looks for duplicates.
_LONGEST_READ = "10000"

#: What it counted, in a file beside its output.
_COUNTS = "markdup.txt"


@contextmanager
def sorted_file(
    made: Path,
    header: BamHeader,
    threads: int,
    path: str,
    compression: Compression = ON_HOST,
    *,
    cram_version: str = CRAM_VERSIONS[0],
) -> Iterator[BlockWriter]:
    """Yield a writer for records in order; the file is `made`, and `path` what it will become."""
    if made.suffix == ".bam":
        with indexed_bam_file(made, header, threads, compression) as writer:
            yield writer
        return
    arguments = ["view", "--no-PG", "-h", *_form(made, cram_version), "-o", made.name, "-"]
    with (
        samtools(arguments, made.parent, path) as process,
        uncompressed_bam(process.stdin, header, threads) as writer,
    ):
        yield writer


@contextmanager
def duplicates_marked(
    made: Path,
    header: BamHeader,
    threads: int,
    path: str,
    compression: Compression = ON_HOST,
    *,
    count: Callable[[int], None],
    barcode_tag: str | None = None,
    cram_version: str = CRAM_VERSIONS[0],
) -> Iterator[BlockWriter]:
    """The same, with all but the best of duplicate pairs and reads flagged.

    With `barcode_tag` duplicates have the same value of this tag, too, such as a UMI in RX.

    The records must have the tags MC and ms, as `samtools fixmate -m` writes them; flags that they
    have already are removed. In the end `count` is called with the number of flagged records.
    """
    form = _form(made, cram_version)
    with _marked(made, header, threads, path, compression, barcode_tag, form) as writer:
        yield writer
    counts = (made.parent / _COUNTS).read_text()
    count(int(re.search(r"^DUPLICATE TOTAL: (\d+)$", counts, re.MULTILINE)[1]))


@contextmanager
def _marked(
    made: Path,
    header: BamHeader,
    threads: int,
    path: str,
    compression: Compression,
    barcode_tag: str | None,
    form: list[str],
) -> Iterator[BlockWriter]:
    arguments = ["markdup", "--no-PG", "-c", "-l", _LONGEST_READ, "-T", "markdup", "-f", _COUNTS]
    if barcode_tag:
        arguments += ["--barcode-tag", barcode_tag]
    if made.suffix != ".bam":
        with (
            samtools([*arguments, *form, "-", made.name], made.parent, path) as process,
            uncompressed_bam(process.stdin, header, threads) as writer,
        ):
            yield writer
        return
    with (
        ThreadPoolExecutor(1) as reader,
        indexed_bam_file(made, header, threads, compression) as marked,
        samtools([*arguments, "-u", "-", "-"], made.parent, path) as process,
    ):
        done = reader.submit(_copy, process.stdout, made, header, marked)
        # If nobody reads, nobody can write: the writer is to fail as well.
        done.add_done_callback(lambda done: done.exception() and process.kill())
        try:
            with uncompressed_bam(process.stdin, header, threads) as writer:
                yield writer
            process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            done.result()
        except InputError:
            # What samtools says of its end says more.
            if process.wait() == 0:
                raise


def _copy(file: IO[bytes], made: Path, header: BamHeader, writer: BlockWriter) -> None:
    """Write the records of a BAM stream."""
    _, blocks = split_header(made, read_bgzf(file, made))
    for records in whole_records(made, blocks, header.contig_starts):
        writer.write(records.data, records.starts)


def _form(made: Path, cram_version: str) -> list[str]:
    """Options of samtools for SAM or CRAM."""
    if made.suffix == ".sam":
        return ["-O", "sam"]
    return ["-O", f"cram,version={cram_version}", "--write-index", "-@", _CRAM_THREADS]
