"""Loci of reads as they stream by, chunk after chunk, in their order."""

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.loci import find_cpu
from bwarp.loci.alignments_cpu import LocusAlignments, align_by_score, align_loci
from bwarp.loci.candidates_cpu import blocks_of
from bwarp.loci.find_cpu import TextAndGenome
from bwarp.loci.options import Extension, FoundLoci, LocusOptions
from bwarp.loci.pairs_cpu import (
    LocusPairs,
    PairOptions,
    estimate_insert_size,
    pair_loci,
    single_insert_sizes,
)
from bwarp.loci.verify_cpu import COUNTS
from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.insert_size import FIRST_PAIRS, InsertSize
from bwarp.mapping.pipeline import first_chunks
from bwarp.options.mapping import ALL
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.runtime.threads import in_order, run_together
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# The engine that finds loci: what it keeps for that, and how many reads it takes at a time.


#: Reads of a chunk where all their loci are wanted: in a large genome that is hundreds a read, and
#: many chunks are in work.
READS_WITH_ALL = 1 << 13


def reads_a_chunk(backend: str, options: LocusOptions) -> int:
    """Reads of a chunk that keep an engine busy."""
    if options.strata == ALL:
        return READS_WITH_ALL
    if backend == "cuda":
        from bwarp.loci import find_cuda

        return find_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def load(
    index: FMIndex, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> tuple[TextAndGenome, list | None]:
    """What loci are verified against and, at the same time, what each of `gpus` GPUs keeps."""
    make_genome = partial(find_cpu.load, index.reference, threads)
    if backend == "cuda":
        from bwarp.gpu.several_gpus import on_each
        from bwarp.loci import find_cuda

        prepare = partial(find_cuda.prepare, index, threads)
        return tuple(run_together([make_genome, partial(on_each, prepare, gpus)], 2))
    return make_genome(), None


def loci_finder(
    index: FMIndex, genome: TextAndGenome, options: LocusOptions, kept: list | None = None
) -> Callable:
    """A function that finds all loci of a batch of reads, for several threads at once.

    ``find(both, blocks, offsets)`` takes and returns what `bwarp.loci.find_cpu.find_batch` does,
    with either engine the same.

    Parameters
    ----------
    kept : list, optional
        What `load` has returned with the genome: with it, loci are found on the GPUs.
    """
    if kept is None:
        return lambda both, blocks, offsets: find_cpu.find_batch(
            index, genome, both, blocks, offsets, options
        )
    from bwarp.gpu.several_gpus import LeastBusy
    from bwarp.loci.find_cuda import LociFinder

    finders = LeastBusy([LociFinder(index, genome, device, options) for device in kept])

    def find(both, blocks, offsets):
        with finders.lent() as finder:
            return finder.find_batch(both, blocks, offsets)

    return find


def steps_of(backend: str) -> ModuleType:
    """The steps of the chain, each alone: `bwarp.loci.find_cpu` or its twin."""
    return import_module(f"bwarp.loci.find_{backend}")


Result = TypeVar("Result")

#: No search counts to this.
_MOST_COUNTED = 1 << 60


@dataclass
class Certificate:
    """What was searched and what became of it: the proof that nothing was left out.

    Attributes
    ----------
    reads, aligned, over, without, skipped : int
        Every read is aligned, over the limit of loci, without a locus, or was not searched.
    parts, located, dropped, verified, confirmed : int
        Parts of reads searched; their SA rows, all located; of these, dropped by the
        bound, verified (others agree with one that is), and confirmed.
    loci : int
        Those written; of a template with proper pairs one for each end of each.
    loci_over : int
        Those of reads over the limit.
    pairs : int
        Proper pairs written.
    lowest_insert_size, highest_insert_size : int
        Within which pairs are proper; 0 without pairs.
    """

    reads: int = 0
    aligned: int = 0
    over: int = 0
    without: int = 0
    skipped: int = 0
    parts: int = 0
    located: int = 0
    dropped: int = 0
    verified: int = 0
    confirmed: int = 0
    loci: int = 0
    loci_over: int = 0
    pairs: int = 0
    lowest_insert_size: int = 0
    highest_insert_size: int = 0

    def add(self, other: "Certificate") -> None:
        for name in (one.name for one in fields(self)):
            mine, others = getattr(self, name), getattr(other, name)
            setattr(self, name, max(mine, others) if "insert_size" in name else mine + others)

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Certificate":
        """What a run has written.

        Raises
        ------
        InputError
            For a file of anything else.
        """
        try:
            counts = json.loads(Path(path).read_bytes())
            certificate = cls(**counts)
            whole = all(
                type(count) is int and 0 <= count < _MOST_COUNTED for count in counts.values()
            )
        except (ValueError, TypeError, RecursionError):
            whole = False
        if not whole or len(counts) != len(fields(cls)):
            raise InputError(f"{path}: not the counts of a search for loci: make them again")
        return certificate

    def sentence(self) -> str:
        """All counts of reads, for people."""
        pairs = f", {counted(self.pairs, 'proper pair')}," if self.highest_insert_size else ","
        return (
            f"{counted(self.reads, 'read')}: {self.aligned:,} with "
            f"{counted(self.loci, 'locus')}{pairs} {self.over:,} "
            f"over the limit, {self.without:,} without a locus, {self.skipped:,} not searched"
        )


@dataclass(frozen=True)
class FoundChunk:
    """The loci of a chunk of reads.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, dtype=uint8
        The reads, then their reverse complements.
    loci : FoundLoci
        Those of reads within the limit of loci.
    alignments : LocusAlignments
    n_loci : ndarray, shape=(n_reads,), dtype=int64
        How many each read has, whatever the limit; proper pairs of a template that has some.
    over : ndarray, dtype=int64
        The reads over the limit.
    certificate : Certificate
    pairs : LocusPairs or None
        None for single reads.
    """

    chunk: ReadChunk
    both: np.ndarray
    loci: FoundLoci
    alignments: LocusAlignments
    n_loci: np.ndarray
    over: np.ndarray
    certificate: Certificate = field(default_factory=Certificate)
    pairs: LocusPairs | None = None


@dataclass(frozen=True)
class _Searched:
    """A chunk and all its loci, before they are paired and aligned."""

    chunk: ReadChunk
    both: np.ndarray
    blocks: np.ndarray
    loci: FoundLoci
    counts: np.ndarray


def find_chunks(
    index: FMIndex,
    genome: TextAndGenome,
    chunks: Iterator[ReadChunk],
    options: LocusOptions,
    max_places: int = 0,
    threads: int = 1,
    then: Callable[[FoundChunk], Result] = lambda found: found,
    kept: list | None = None,
    pairing: PairOptions | None = None,
    extension: Extension | None = None,
) -> Iterator[Result]:
    """Find the loci of every chunk, several chunks at a time.

    Parameters
    ----------
    max_places : int
        A read with more is only counted; 0: no limit.
    then : function
        What else is done with a chunk in its thread, such as making text of it.
    kept : optional
        What `bwarp.loci.find.load` has returned for GPUs: the loci are the same.
    pairing : PairOptions, optional
        For chunks of pairs; without, their ends are reported one by one. Where the insert size is
        estimated, from the first `FIRST_PAIRS` pairs, the others wait for it.
    extension : Extension, optional
        The scores by which reads are aligned; without, they are with the fewest edits.
    """
    search = partial(_search, loci_finder(index, genome, what_is_searched(options, pairing), kept))
    insert = None if pairing is None else pairing.insert

    def finish(one: _Searched) -> Result:
        found = finish_chunk(
            genome, one.chunk, one.both, one.blocks, one.loci, one.counts, options, max_places,
            index.reference.contig_starts, insert, extension,
        )  # fmt: skip
        return then(found)

    first, searched = deque(), iter(())
    chunks = iter(chunks)
    if pairing is not None and insert is None:
        waiting = list(first_chunks(chunks))
        # Meanwhile no thread is to be idle.
        more = islice(chunks, max(0, threads - len(waiting)))
        searched = in_order(search, chain(waiting, more), threads)
        first.extend(islice(searched, len(waiting)))
        sizes = [
            single_insert_sizes(
                one.loci, index.reference.contig_starts, FIRST_PAIRS - one.chunk.first_template
            )
            for one in first
        ]
        insert = estimate_insert_size(sizes, pairing.orientation)
    # A chunk that is searched already is not kept longer than the others.
    begun = chain((first.popleft() for _ in range(len(first))), searched)
    begun = (partial(finish, one) for one in begun)
    others = (partial(lambda one: finish(search(one)), chunk) for chunk in chunks)
    yield from in_order(lambda work: work(), chain(begun, others), threads)


def what_is_searched(options: LocusOptions, pairing: PairOptions | None) -> LocusOptions:
    """The options of single reads; of pairs all loci, for the best pair may have any of them."""
    return options if pairing is None else replace(options, strata=ALL)


@on_timeline("find loci")
def _search(find: Callable, chunk: ReadChunk) -> _Searched:
    both = both_strands(chunk.codes, chunk.offsets)
    blocks = blocks_of(both)
    return _Searched(chunk, both, blocks, *find(both, blocks, chunk.offsets))


@on_timeline("align loci")
def finish_chunk(
    genome: TextAndGenome,
    chunk: ReadChunk,
    both: np.ndarray,
    blocks: np.ndarray,
    loci: FoundLoci,
    counts: np.ndarray,
    options: LocusOptions,
    most: int = 0,
    contig_starts: np.ndarray | None = None,
    insert: InsertSize | None = None,
    extension: Extension | None = None,
) -> FoundChunk:
    """The loci of a chunk with their alignments, and those of reads with more than `most` counted.

    Parameters
    ----------
    both, blocks : ndarray
        The reads on both strands, and their blocks.
    counts : ndarray, dtype=int64
        What it took to find the loci (`COUNTS`).
    contig_starts, insert : optional
        Of pairs, to list loci pair by pair.
    extension : Extension, optional
        The scores by which reads are aligned; without, they are with the fewest edits.
    """
    pairs = None
    if insert is None:
        n_loci = np.bincount(loci.reads, minlength=chunk.n_reads)
    else:
        lengths = np.diff(chunk.offsets)
        loci, pairs, n_loci = pair_loci(loci, lengths, contig_starts, insert, options.strata, most)
    over = np.flatnonzero(n_loci > most) if most else np.empty(0, np.int64)
    if over.size and pairs is None:
        loci = _within(loci, n_loci <= most)
    if extension is None:
        gaps = options.gaps_of(options.edits_of(np.diff(chunk.offsets)))
        alignments = align_loci(genome.blocks, blocks, chunk.offsets, loci, gaps)
    else:
        alignments = align_by_score(genome.blocks, both, blocks, chunk.offsets, loci, extension)
    skipped = int((loci.searched < 0).sum())
    with_loci = int((n_loci > 0).sum())
    certificate = Certificate(
        reads=chunk.n_reads,
        aligned=with_loci - over.size,
        over=int(over.size),
        without=chunk.n_reads - with_loci - skipped,
        skipped=skipped,
        loci=len(loci.reads),
        loci_over=int(n_loci[over].sum()),
        pairs=0 if pairs is None else int((pairs.numbers > 0).sum()) // 2,
        lowest_insert_size=0 if insert is None else insert.lowest,
        highest_insert_size=0 if insert is None else insert.highest,
        **dict(zip(COUNTS, counts.tolist(), strict=True)),
    )
    return FoundChunk(chunk, both, loci, alignments, n_loci, over, certificate, pairs)


def _within(loci: FoundLoci, kept: np.ndarray) -> FoundLoci:
    """The loci of the reads to be kept."""
    rows = kept[loci.reads]
    columns = [loci.reads, loci.strands, loci.starts, loci.ends, loci.distances]
    return FoundLoci(*(column[rows] for column in columns), loci.searched)
