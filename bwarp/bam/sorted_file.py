"""Writing files of sorted records: indexed BAM, CRAM or SAM.

sorted records -+-> our BAM
                '-> samtools view -> SAM, or pieces of CRAM (cram.py)
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from bwarp.bam.bgzf import END_OF_FILE, read_bgzf
from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression_engine import ON_HOST, STORED, STORED_BLOCKS, Compression
from bwarp.bam.cram import CramWriter, cram_file
from bwarp.bam.duplicates import DuplicateMarker, records_with_room
from bwarp.bam.external_sort import merged, whole_records
from bwarp.bam.header import BamHeader, header_bytes, merged_header, split_header
from bwarp.bam.index import IndexBuilder, index_ending
from bwarp.bam.samtools import samtools
from bwarp.checks.check_files import CheckFiles
from bwarp.checks.checker import Checker
from bwarp.options.mapping import CRAM_VERSIONS
from bwarp.runtime.chunks import read_ahead

# --------------------------------------------------------------------------------------------------
# BAM files: header, blocks, end marker, and optionally the index.


@contextmanager
def bam_file(
    file: IO[bytes], header: BamHeader, threads: int, compression: Compression = ON_HOST
) -> Iterator[BlockWriter]:
    """Write a BAM file of records in any order."""
    writer = BlockWriter(file, threads, compression)
    with writer.after(header_bytes(header)):
        yield writer
    file.write(END_OF_FILE)


@contextmanager
def indexed_bam_file(
    path: Path,
    header: BamHeader,
    threads: int,
    compression: Compression = ON_HOST,
    checker: Checker | None = None,
) -> Iterator[BlockWriter]:
    """Write a BAM file of sorted records, and its index next to it (.bai or .csi)."""
    index = IndexBuilder(header.lengths)
    with open(path, "wb") as file:
        writer = BlockWriter(file, threads, compression, index, checker)
        with writer.after(header_bytes(header)):
            yield writer
        file.write(END_OF_FILE)
    path.with_name(path.name + index_ending(header.lengths)).write_bytes(
        index.finish(writer.block_addresses)
    )


@contextmanager
def bam_to_merge(made: Path, header: BamHeader, threads: int) -> Iterator[BlockWriter]:
    """Write a BAM file of sorted records for `merge_files`: uncompressed, and without an index."""
    with open(made, "wb") as file, bam_file(file, header, threads, STORED_BLOCKS) as writer:
        yield writer


@contextmanager
def uncompressed_bam(
    file: IO[bytes], header: BamHeader, threads: int, checker: Checker | None = None
) -> Iterator[BlockWriter]:
    """Write uncompressed BAM to a program that reads it."""
    writer = BlockWriter(file, threads, STORED, checker=checker)
    with writer.after(header_bytes(header)):
        yield writer


# --------------------------------------------------------------------------------------------------
# Files of sorted records.


@contextmanager
def sorted_file(
    made: Path,
    header: BamHeader,
    threads: int,
    path: str,
    compression: Compression = ON_HOST,
    *,
    cram_version: str = CRAM_VERSIONS[0],
    check_files: CheckFiles | None = None,
) -> Iterator[BlockWriter | CramWriter]:
    """Yield a writer for sorted records to the file `made`, which will be renamed to `path`.

    This also writes `check_files`, if given.
    """
    with ExitStack() as stack:
        checker = None
        if check_files is not None:
            checker = stack.enter_context(check_files.checking(header, threads))
        yield stack.enter_context(
            _unchecked_file(made, header, threads, path, compression, cram_version, checker)
        )


@contextmanager
def _unchecked_file(
    made: Path, header: BamHeader, threads: int, path: str, compression: Compression,
    cram_version: str, checker: Checker | None,
) -> Iterator[BlockWriter | CramWriter]:  # fmt: skip
    """Yield the writer for `sorted_file`, which also passes its records to `checker`."""
    if made.suffix == ".bam":
        with indexed_bam_file(made, header, threads, compression, checker) as writer:
            yield writer
        return
    if made.suffix == ".cram":
        with cram_file(made, header, threads, path, cram_version, checker) as writer:
            yield writer
        return
    arguments = ["view", "--no-PG", "-h", "-O", "sam", "-o", made.name, "-"]
    with (
        samtools(arguments, made.parent, path) as process,
        uncompressed_bam(process.stdin, header, threads, checker) as writer,
    ):
        yield writer


# --------------------------------------------------------------------------------------------------
# Merging sorted BAM files.


def merge_files(
    paths: Sequence[str | os.PathLike],
    made: Path,
    threads: int,
    output: str,
    open_file: Callable = sorted_file,
    change_header: Callable[[BamHeader], BamHeader] = lambda header: header,
    duplicates: DuplicateMarker | None = None,
) -> None:
    """Merge sorted BAM files to `made`, which will be renamed to `output`.

    Among records at the same position, those of earlier files come first.

    Parameters
    ----------
    open_file : function
        `sorted_file`, or another function that writes a file of sorted records.
    change_header : function
        Maps the merged header to the header that is written.
    duplicates : DuplicateMarker, optional
        Has found the duplicates of all files (see `templates_of_files`); records are marked.
    """
    with ExitStack() as files:
        headers, runs = [], []
        for path in paths:
            file = files.enter_context(open(path, "rb"))
            header, blocks = split_header(path, read_bgzf(file, path, 1 + threads // len(paths)))
            headers.append(header)
            run = whole_records(path, blocks, header.contig_starts)
            if duplicates is not None:
                # Remove the tags of duplicates of earlier runs.
                with_room = partial(
                    records_with_room, with_room=duplicates.with_tags, path=os.fspath(path)
                )
                run = map(with_room, run)
            runs.append(read_ahead(run))
        header = change_header(merged_header(list(paths), headers))
        with open_file(made, header, threads, output) as writer:
            for records, order in read_ahead(merged(runs, threads)):
                if duplicates is not None:
                    duplicates.mark(records)
                writer.write(records.data, records.starts, order)


def templates_of_files(
    paths: Sequence[str | os.PathLike],
    barcode_tag: str | None,
    optical_distance: int | None,
    threads: int,
    folder: Path,
    sort_bytes: int,
    with_tags: bool = False,
) -> DuplicateMarker:
    """Return a marker with the templates of sorted BAM files, which have the numbers 0, 1, ...

    The other parameters are those of `DuplicateMarker`.
    """
    headers = []
    for path in paths:
        with open(path, "rb") as file:
            headers.append(split_header(path, read_bgzf(file, path))[0])
    header = merged_header(list(paths), headers)
    marker = DuplicateMarker(
        header, barcode_tag, optical_distance, threads, folder, sort_bytes, with_tags
    )
    for number, path in enumerate(paths):
        with open(path, "rb") as file:
            header, blocks = split_header(path, read_bgzf(file, path, threads))
            for records in read_ahead(whole_records(path, blocks, header.contig_starts)):
                marker.add(records, path, number)
    return marker
