"""bwarp.find_mems: maximal exact matches, as bwarp mems finds them."""

import os
from collections.abc import Iterator

import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_or_chunks_of
from bwarp.api.sequences import Sequences, sequence_batches
from bwarp.api.tables import frame, named
from bwarp.index.chunks import ChunkedIndex
from bwarp.io.names import names_of
from bwarp.mems.find import find_matches, prepare, queries_at_once
from bwarp.mems.match_text import COLUMNS, match_columns
from bwarp.mems.query_text import STRANDS, make_query_text
from bwarp.options.finding import MEMS

MATCHES = COLUMNS.decode().split()


def find_mems(
    index: Index | str | os.PathLike,
    queries: Sequences,
    *,
    min_length: int = 20,
    kind: str = "mumreference",
    strands: str = "forward",
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find maximal exact matches between queries and a reference.

    Parameters
    ----------
    index : Index, or the folder of one; it may be in chunks
    queries : path, or sequences in memory
    min_length : int, default: 20
        Minimum length of a match.
    kind : {"mumreference", "maxmatch", "mum"}
        Matches unique in the reference, all matches, or matches unique in both.
    strands : {"forward", "reverse", "both"}
        Strands of the queries to search.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    matches : DataFrame
        Columns query, query_start, strand, contig, position and length, as in OUT.tsv of
        bwarp mems, 0-based and on the forward strands.
    """
    min_length = MEMS["min_length"].check(min_length)
    MEMS["kind"].check(kind)
    searched = STRANDS[MEMS["strands"].check(strands)]
    threads = threads_or_all(threads)
    stored = arrays_or_chunks_of(index)
    engine, ready = prepared(backend, lambda engine: prepare(stored, kind, engine))
    in_turn = isinstance(stored, ChunkedIndex) and engine == "cuda"
    where, batches = sequence_batches(queries, "queries", chunk_bytes=queries_at_once(in_turn))
    reference = stored.reference

    def parts() -> Iterator[tuple]:
        for batch in batches:
            names_of(where, batch)
            text = make_query_text(batch.codes, batch.offsets, searched, min_length, threads)
            for matches in find_matches(ready, text, min_length, kind, engine, threads):
                rows = match_columns(matches, batch, reference, searched)
                yield (
                    named(rows.names, rows.queries),
                    rows.starts,
                    named("+-", rows.strands),
                    named(reference.names, rows.contigs),
                    rows.positions,
                    rows.values,
                )

    return frame(MATCHES, parts())
