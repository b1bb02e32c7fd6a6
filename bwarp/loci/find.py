"""Find the loci of a stream of reads, chunk by chunk and in input order, with either engine."""

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

# The engine: what it keeps in memory, and its chunk size.


#: Reads per chunk when all loci are wanted: hundreds per read in a large genome, with many chunks
#: in flight.
READS_WITH_ALL = 1 << 13


def reads_a_chunk(backend: str, options: LocusOptions) -> int:
    """Return the number of reads per chunk that keeps an engine busy."""
    if options.strata == ALL:
        return READS_WITH_ALL
    if backend == "cuda":
        from bwarp.loci import find_cuda

        return find_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def load(
    index: FMIndex, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> tuple[TextAndGenome, list | None]:
    """Load the genome and, in parallel, the state of each of `gpus` GPUs."""
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
    """Return a function that finds all loci of a batch of reads and can be called from several
    threads.

    ``find(both, blocks, offsets)`` takes and returns what `bwarp.loci.find_cpu.find_batch` does;
    the results do not depend on the engine.

    Parameters
    ----------
    kept : list, optional
        The result of `load` for the GPUs; if given, loci are found on them.
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
    """Return the module with the steps of the chain: `bwarp.loci.find_cpu` or its CUDA twin."""
    return import_module(f"bwarp.loci.find_{backend}")


Result = TypeVar("Result")

#: A count that no search reaches.
_MOST_COUNTED = 1 << 60


@dataclass
class Certificate:
    """Counters of a search: the proof that nothing was left out.

    Attributes
    ----------
    reads, aligned, over, without, skipped : int
        Each read is aligned, over the limit of loci, without a locus, or not searched.
    parts, located, dropped, verified, confirmed : int
        Parts of reads searched; their SA rows, all located; rows dropped by the bound, verified (a
        verified one stands for all that agree with it), and confirmed.
    loci : int
        Loci written; for a template with proper pairs, one per end of each pair.
    loci_over : int
        Loci of reads over the limit.
    pairs : int
        Proper pairs written.
    lowest_insert_size, highest_insert_size : int
        The range of insert sizes of proper pairs; 0 without pairs.
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
        """Read the counters that a run wrote.

        Raises
        ------
        InputError
            If the file is anything else.
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
            raise InputError(f"{path}: not statistics of a search for loci: make them again")
        return certificate

    def sentence(self) -> str:
        """Return all read counts as a sentence."""
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
        The reads, followed by their reverse complements.
    loci : FoundLoci
        Of reads within the limit of loci.
    alignments : LocusAlignments
    n_loci : ndarray, shape=(n_reads,), dtype=int64
        Loci of each read, regardless of the limit; for a template with proper pairs, its pairs.
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
    """A chunk and all its loci, before pairing and alignment."""

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
    """Find the loci of every chunk, with several chunks in flight.

    Parameters
    ----------
    max_places : int
        Reads with more loci are only counted; 0 means no limit.
    then : function
        Further processing of a chunk in the same thread, such as formatting it as text.
    kept : optional
        The result of `bwarp.loci.find.load` for GPUs; the loci are the same.
    pairing : PairOptions, optional
        For chunks of pairs; without it, ends are reported independently. If the insert size is
        estimated, from the first `FIRST_PAIRS` pairs, the other pairs wait for the estimate.
    extension : Extension, optional
        Scores for aligning the reads; without them, alignments have the fewest edits.
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
        # Keep all threads busy meanwhile.
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
    # Do not hold chunks that are already searched longer than the others.
    begun = chain((first.popleft() for _ in range(len(first))), searched)
    begun = (partial(finish, one) for one in begun)
    others = (partial(lambda one: finish(search(one)), chunk) for chunk in chunks)
    yield from in_order(lambda work: work(), chain(begun, others), threads)


def what_is_searched(options: LocusOptions, pairing: PairOptions | None) -> LocusOptions:
    """Return the search options; for pairs, search all loci, because the best pair may have any of
    them.
    """
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
    """Align the loci of a chunk, and count the loci of reads with more than `most`.

    Parameters
    ----------
    both, blocks : ndarray
        The reads on both strands, and their blocks.
    counts : ndarray, dtype=int64
        Counters of the search (`COUNTS`).
    contig_starts, insert : optional
        For pairs, to list loci pair by pair.
    extension : Extension, optional
        Scores for aligning the reads; without them, alignments have the fewest edits.
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
    """Return the loci of the selected reads."""
    rows = kept[loci.reads]
    columns = [loci.reads, loci.strands, loci.starts, loci.ends, loci.distances]
    return FoundLoci(*(column[rows] for column in columns), loci.searched)
