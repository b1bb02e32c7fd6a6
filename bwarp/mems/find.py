"""Find matches of a given kind by the fastest method for the given data."""

from collections.abc import Iterator

from bwarp.index.chunks import (
    ChunkedIndex,
    Prepare,
    PreparedChunks,
    prepare_chunks,
    prepare_in_turn,
)
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import require_reverse
from bwarp.io.compressed_files import CHUNK_BYTES
from bwarp.mems.kmer_table_cpu import KmerTable, table_matches
from bwarp.mems.query_text import Matches, QueryText, join_matches
from bwarp.mems.reference_chunks import find_in_prepared_chunks
from bwarp.mems.unique_cpu import unique_in_query, unique_in_reference
from bwarp.options.finding import MEMS

#: MUMmer's names: all matches; matches unique in the reference; matches also unique in the query.
KINDS = MEMS["kind"].value.words


def prepare(
    index: FMIndex | ChunkedIndex, kind: str, backend: str, gpus: int = 0
) -> FMIndex | PreparedChunks:
    """Prepare an index for `find_matches` of a kind; with ``"cuda"``, copy it to the GPU.

    Parameters
    ----------
    gpus : int
        With ``"cuda"`` and an index in chunks: distribute all chunks over up to this many GPUs. 0:
        copy one chunk at a time, whenever it is searched.
    """
    if isinstance(index, ChunkedIndex):
        if backend == "cuda" and not gpus:
            return prepare_in_turn(index, _prepare_chunk(backend))
        return prepare_chunks(index, _prepare_chunk(backend), backend, gpus)
    if kind != "maxmatch":
        require_reverse(index, "a search for unique matches")
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import prepare as put_on_gpu

        return put_on_gpu(index, with_reverse=kind != "maxmatch")
    return index


def _prepare_chunk(backend: str) -> Prepare:
    """Return a function that prepares a chunk; only all matches are searched in chunks."""
    if backend != "cuda":
        return lambda index, chunk, share: index
    from bwarp.mems.maximal_cuda import prepare as put_on_gpu

    return lambda index, chunk, share: put_on_gpu(index, with_reverse=False, share=share)


def queries_at_once(in_turn: bool) -> int:
    """Return how many bytes of queries to search at a time: many, if chunks are loaded in turn."""
    return 1 << 30 if in_turn else CHUNK_BYTES


def find_matches(
    index: FMIndex | PreparedChunks,
    text: QueryText,
    min_length: int,
    kind: str,
    backend: str,
    threads: int = 1,
) -> Iterator[Matches]:
    """Find maximal exact matches with an FM-index.

    Parameters
    ----------
    index : FMIndex or PreparedChunks
        As returned by `prepare`.
    kind : str
        One of `KINDS`.
    backend : str
        ``"cpu"`` or ``"cuda"``; the matches and their order are the same.

    Yields
    ------
    matches : Matches
        Blocks of matches, ordered by query strand, then by start in the query, then by start in the
        reference; for the kind mum, by start in the reference.
    """
    if isinstance(index, PreparedChunks):
        yield from find_in_prepared_chunks(index, text, min_length, kind, backend, threads)
        return
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import maximal_matches
        from bwarp.mems.unique_cuda import unique_matches
    else:
        from bwarp.mems.maximal_cpu import maximal_matches
        from bwarp.mems.unique_cpu import unique_matches
    if kind == "maxmatch":
        yield from maximal_matches(index, text, min_length, threads)
    elif kind == "mumreference":
        yield from unique_matches(index, text, min_length, threads)
    else:
        yield unique_in_query(join_matches(list(unique_matches(index, text, min_length, threads))))


def find_table_matches(
    table: KmerTable, text: QueryText, min_length: int, kind: str, threads: int = 1
) -> Iterator[Matches]:
    """Find maximal exact matches with a table of the reference's k-mers; the results are the same.

    Unique matches are selected from all matches, which is fast for genomes with few repeats.
    """
    blocks = table_matches(table, text, min_length, threads)
    if kind == "maxmatch":
        yield from blocks
        return
    matches = unique_in_reference(join_matches(list(blocks)))
    yield matches if kind == "mumreference" else unique_in_query(matches)
