"""bwarp.find_loci: every locus of reads with few edits, as bwarp allmap finds them."""

import os
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd

from bwarp.alignment.pair_text import cigar_texts
from bwarp.alignment.pairs import DELETION, INSERTION
from bwarp.allmap.alignments_cpu import LocusAlignments
from bwarp.allmap.find import FoundChunk, LociTask, load, reads_a_chunk
from bwarp.allmap.locus_text import loci_header
from bwarp.allmap.options import LocusOptions, extension_of
from bwarp.allmap.pairs_cpu import PairOptions
from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_of
from bwarp.api.sequences import Sequences, chunks_of_reads
from bwarp.api.tables import frame, named
from bwarp.counted import counted
from bwarp.mapping.insert_size import given_insert_size
from bwarp.mapping.parameters import mapping_parameters
from bwarp.options.mapping import ALLMAP, parse_edits, parse_report
from bwarp.reference import Reference


def find_loci(
    index: Index | str | os.PathLike,
    reads: Sequences,
    mates: Sequences | None = None,
    *,
    edits: int | str,
    gaps: int | None = None,
    report: str = "all",
    filter: str = "auto",
    max_places: int = 0,
    insert_size: tuple[float, float] | None = None,
    orientation: str | None = None,
    extension: str = "edits",
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find every locus where reads align with at most `edits` edits; none is missed.

    Parameters
    ----------
    index : Index, or the folder of one
    reads, mates : path, or sequences in memory
        With mates, reads are pairs: mate i is the other end of read i.
    edits : int or str
        Maximum number of edits, such as 4, or "3%" of the length of the read.
    gaps : int, optional
        Maximum number of inserted and deleted bases among the edits; by default `edits`.
    report : str, default: "all"
        Loci to report: "all", "best" for those with the fewest edits, or "strata:X" for those
        with at most X edits more than the best.
    filter : {"auto", "histogram", "kmers", "both", "off"}
        Lower bounds of edits that drop candidates before verification. The results are the same.
    max_places : int, default: 0
        Reads with more loci get no rows; 0 is no limit.
    insert_size : (float, float), optional
        Mean and standard deviation; by default estimated from the first pairs.
    orientation : {"FR", "RF", "FF", "RR"}, optional
        Orientation of pairs; by default that of the majority of the first pairs.
    extension : {"edits", "semiglobal", "local"}
        Alignment at each locus: with the fewest edits, or by scores, of the whole read or of
        its best-scoring part.
    match, mismatch, gap_open, gap_extend : int, optional
        Scores for extension "semiglobal" and "local"; by default those of bwarp allmap.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    loci : DataFrame
        Columns query, strand, contig, start, end, distance, mismatches, insertions, deletions
        and cigar; with scores also score and locus_edits, and for pairs also pair. Rows are
        those of OUT.tsv of bwarp allmap, in the same order.

    Warns
    -----
    UserWarning
        If reads have more loci than `max_places`, and so no rows, or are no longer than the
        allowed edits.
    """
    gaps = ALLMAP["gaps"].check(gaps)
    options = LocusOptions(
        *parse_edits(str(edits)), gaps, parse_report(ALLMAP["report"].check(report)), filter=filter
    )
    max_places = ALLMAP["max_places"].check(max_places)
    scores = {"match": match, "mismatch": mismatch, "gap_open": gap_open, "gap_extend": gap_extend}
    scores = {name: ALLMAP[name].check(score) for name, score in scores.items()}
    scored = extension_of(extension, **scores)
    threads = threads_or_all(threads)
    pairing = None
    if mates is not None:
        parameters = mapping_parameters(
            insert_size=insert_size, orientation=ALLMAP["orientation"].check(orientation)
        )
        pairing = PairOptions(given_insert_size(parameters), orientation)
    stored = arrays_of(index)
    task = LociTask(options, max_places, pairing, scored)
    backend, engine = prepared(backend, lambda backend: load(stored, task, backend, threads))
    size = reads_a_chunk(backend, task)
    chunks = chunks_of_reads(reads, mates, size, threads)
    over = skipped = 0

    def parts() -> Iterator[tuple]:
        nonlocal over, skipped
        one: FoundChunk
        for one, certificate in engine.find_loci(chunks):
            over += certificate.over
            skipped += certificate.skipped
            yield _columns(one, stored.reference, scored is not None)

    names = loci_header(scored is not None, pairing is not None).decode().split()
    loci = frame(names, parts())
    if over:
        warnings.warn(
            f"{counted(over, 'read has', 'reads have')} more than {counted(max_places, 'locus')} "
            "and no rows: use max_places=0 to list all loci",
            stacklevel=2,
        )
    if skipped:
        warnings.warn(
            counted(
                skipped,
                "read was not searched because it has no more bases than edits are allowed",
                "reads were not searched because they have no more bases than edits are allowed",
            ),
            stacklevel=2,
        )
    return loci


def _columns(found: FoundChunk, reference: Reference, scored: bool) -> tuple:
    loci, chunk, aligned = found.loci, found.chunk, found.alignments
    templates = [chunk.name(template) for template in range(chunk.n_templates)]
    names = named(templates, loci.reads // chunk.ends)
    if chunk.ends == 2:
        names = names + named(("/1", "/2"), loci.reads % 2)
    contigs = reference.contig_of(loci.starts)
    begins = reference.contig_starts[contigs]
    inserted, deleted = (_bases(aligned, kind) for kind in (INSERTION, DELETION))
    columns = [
        names,
        named("+-", loci.strands),
        named(reference.names, contigs),
        aligned.starts - begins,
        aligned.ends - begins,
        aligned.distances,
        aligned.distances - inserted - deleted,
        inserted,
        deleted,
        np.array(cigar_texts(aligned.offsets, aligned.cigar), object),
    ]
    if scored:
        columns += [aligned.scores, loci.distances]
    return (*columns, *([] if found.pairs is None else [found.pairs.numbers]))


def _bases(aligned: LocusAlignments, operation: int) -> np.ndarray:
    """Return the number of bases of an operation in each alignment."""
    sizes = np.where(aligned.cigar & 15 == operation, aligned.cigar >> 4, 0)
    before = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    return before[aligned.offsets[1:]] - before[aligned.offsets[:-1]]
