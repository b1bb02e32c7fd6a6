"""BAM files as they are written: header, blocks, end, and the index where there is to be one."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from bwarp.io.bam.bai_index import IndexBuilder, index_ending
from bwarp.io.bam.bgzf import END_OF_FILE
from bwarp.io.bam.block_writer import BlockWriter
from bwarp.io.bam.compression import ON_HOST, STORED, Compression
from bwarp.io.bam.header import BamHeader, header_bytes

__all__ = ["bam_file", "indexed_bam_file", "uncompressed_bam"]


@contextmanager
def bam_file(
    file: IO[bytes], header: BamHeader, threads: int, compression: Compression = ON_HOST
) -> Iterator[BlockWriter]:
    """Write a BAM file whose records come in any order."""
    writer = BlockWriter(file, threads, compression)
    with _ended(writer, header):
        yield writer
    file.write(END_OF_FILE)


@contextmanager
def indexed_bam_file(
    path: Path, header: BamHeader, threads: int, compression: Compression = ON_HOST
) -> Iterator[BlockWriter]:
    """Write a BAM file whose records come sorted, and its index beside it (.bai or .csi)."""
    index = IndexBuilder(header.lengths)
    with open(path, "wb") as file:
        writer = BlockWriter(file, threads, compression, index)
        with _ended(writer, header):
            yield writer
        file.write(END_OF_FILE)
    path.with_name(path.name + index_ending(header.lengths)).write_bytes(
        index.finish(writer.block_addresses)
    )


@contextmanager
def uncompressed_bam(file: IO[bytes], header: BamHeader, threads: int) -> Iterator[BlockWriter]:
    """Write records to a program that reads BAM."""
    writer = BlockWriter(file, threads, STORED)
    with _ended(writer, header):
        yield writer


@contextmanager
def _ended(writer: BlockWriter, header: BamHeader) -> Iterator[None]:
    """The header before the block, and after it what is waiting, unless it went wrong."""
    try:
        writer.write_header(header_bytes(header))
        yield
        writer.finish()
    finally:
        writer.stop()
