"""Store an index in chunks as a folder, written atomically and checked like an ordinary index.

index.json      version, contigs, the chunks with checksums of their indexes, checksums of files
genome.npy      the contigs of the whole reference, 2 bits per base
segments.npy    genome and text position of every segment
chunk-1/ ...    an ordinary index per chunk

The reverse BWT is added to the index of each chunk, whose checksum does not cover it.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from bwarp.errors import InputError
from bwarp.index.chunks import Chunk, ChunkedIndex
from bwarp.index.description import (
    CHUNKS_FORMAT,
    CHUNKS_VERSIONS,
    OVERLAP,
    describes_chunks,
    parsed_chunks,
    reference_types,
)
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import (
    StoredIndex,
    contig_descriptions,
    load_index,
    read_opened,
    reference_arrays,
    save_arrays,
    stored_at,
    text_of,
    write_index,
    write_json,
)
from bwarp.io.chunk_files import map_file
from bwarp.reference import Reference


def write_chunks(
    reference: Reference,
    chunk_bases: int,
    indexes: Iterable[tuple[Chunk, FMIndex]],
    folder: Path,
    threads: int = 1,
) -> None:
    """Write an index in chunks into an existing folder; indexes are built as they are needed."""
    chunks = []
    for number, (chunk, index) in enumerate(indexes):
        path = folder / _folder_of(number)
        path.mkdir()
        write_index(index, path, threads)
        checksum = load_index(path).checksum
        chunks.append({"start": chunk.start, "stop": chunk.stop, "sum": checksum})
    write_json(
        {
            "format": CHUNKS_FORMAT,
            "version": CHUNKS_VERSIONS[-1],
            "chunk_bases": chunk_bases,
            "overlap": OVERLAP,
            "text_length": reference.text_length,
            "segments": reference.n_segments,
            "contigs": contig_descriptions(reference),
            "chunks": chunks,
            "files": save_arrays(reference_arrays(reference), folder, threads),
        },
        folder,
    )


def open_index(folder: str | os.PathLike) -> StoredIndex | ChunkedIndex:
    """Open an ordinary index, or an index in chunks.

    Only descriptions are read here; arrays are mapped, and checked, on first use.

    Raises
    ------
    InputError
        If the folder is neither, is damaged, or is of another version.
    """
    return read_opened(folder, _stored_at)


def _stored_at(folder: Path, opened: int) -> StoredIndex | ChunkedIndex:
    path = folder / "index.json"
    text = text_of(folder, map_file(path, opened))
    if not describes_chunks(text):
        return stored_at(folder, opened)
    description = parsed_chunks(path, text)
    types = reference_types(description["contigs"], description["segments"])
    files = {name: map_file(folder / name, opened) for name in types}
    indexes = list(_indexes_of_chunks(folder, opened, description["chunks"]))
    return ChunkedIndex(folder, description, files, types, indexes)


def _indexes_of_chunks(folder: Path, opened: int, chunks: list[dict]) -> Iterator[StoredIndex]:
    for number, chunk in enumerate(chunks):
        path = folder / _folder_of(number)
        of_chunk = f"chunk {number + 1} of {len(chunks)}"
        try:
            inside = os.open(path.name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=opened)
        except (FileNotFoundError, NotADirectoryError):
            raise InputError(f"{path}: {of_chunk} is missing: build the index again") from None
        try:
            index = stored_at(path, inside)
        finally:
            os.close(inside)
        if index.checksum != chunk["sum"]:
            raise InputError(
                f"{path}: is not {of_chunk} of this index, but of another one: build the index "
                "again"
            )
        yield index


def _folder_of(number: int) -> str:
    return f"chunk-{number + 1}"
