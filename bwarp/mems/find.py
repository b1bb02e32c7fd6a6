"""Matches of the kind asked for, by whatever finds them fastest in what is given."""

from collections.abc import Iterator

from bwarp.index.fm_index import FMIndex
from bwarp.index.store import require_reverse
from bwarp.mems.kmer_table_cpu import KmerTable, table_matches
from bwarp.mems.query_text import Matches, QueryText, join_matches
from bwarp.mems.unique_cpu import unique_in_query, unique_in_reference
from bwarp.options.finding import MEMS

#: MUMmer's names: all matches; those unique in the reference; those unique in the query as well.
KINDS = MEMS["kind"].value.words


def prepare(index: FMIndex, kind: str, backend: str) -> FMIndex:
    """An index made ready for `find_matches` of a kind: with ``"cuda"`` it is put on the GPU."""
    if kind != "maxmatch":
        require_reverse(index, "a search for unique matches")
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import prepare as put_on_gpu

        return put_on_gpu(index, with_reverse=kind != "maxmatch")
    return index


def find_matches(
    index: FMIndex, text: QueryText, min_length: int, kind: str, backend: str, threads: int = 1
) -> Iterator[Matches]:
    """Find maximal exact matches by an FM-index.

    Parameters
    ----------
    index : FMIndex
        As `prepare` gives it.
    kind : str
        One of `KINDS`.
    backend : str
        ``"cpu"`` or ``"cuda"``; the matches and their order are equal.

    Yields
    ------
    matches : Matches
        Blocks of them, in order: by query strand, then by where they begin in the query and in
        the reference; of the kind mum by where they begin in the reference.
    """
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
    """Find maximal exact matches by a table of the reference's k-mers, with the same results.

    The unique ones are selected from all, which is quick for genomes without many repeats.
    """
    blocks = table_matches(table, text, min_length, threads)
    if kind == "maxmatch":
        yield from blocks
        return
    matches = unique_in_reference(join_matches(list(blocks)))
    yield matches if kind == "mumreference" else unique_in_query(matches)
