"""Find the loci of a stream of reads, chunk by chunk and in input order, with either engine.

    reads -> find -> pairs -> align -> encode

The first chunks of pairs give the insert size of the run (first_pairs.py).
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from itertools import chain, zip_longest
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar

import numpy as np

from bwarp.allmap import find_cpu
from bwarp.allmap.alignments_cpu import LocusAlignments
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find_cpu import LociFinder, TextAndGenome
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions
from bwarp.allmap.pairs_cpu import LocusPairs, PairOptions, pair_loci, single_insert_sizes
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import both_strands
from bwarp.mapping.first_pairs import find_and_finish, pairs_left
from bwarp.mapping.insert_size import InsertSize, insert_size_of_parts
from bwarp.options.mapping import ALL
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.runtime.threads import run_together
from bwarp.runtime.timeline import on_timeline

#: Reads per chunk when all loci are wanted: hundreds per read in a large genome, with many chunks
#: in flight.
READS_WITH_ALL = 1 << 13


class LociTask(NamedTuple):
    """What a run searches and reports.

    Attributes
    ----------
    limits : LocusOptions
    max_places : int
        Reads with more loci are only counted; 0 means no limit.
    pairing : PairOptions or None
        For chunks of pairs; without it, ends are reported independently.
    extension : Extension or None
        Scores for aligning the reads; without them, alignments have the fewest edits.
    """

    limits: LocusOptions
    max_places: int = 0
    pairing: PairOptions | None = None
    extension: Extension | None = None

    @property
    def searched(self) -> LocusOptions:
        """The search options: for pairs, all loci, because the best pair may have any of them."""
        return self.limits if self.pairing is None else replace(self.limits, strata=ALL)


def reads_a_chunk(backend: str, task: LociTask) -> int:
    """Return the number of reads per chunk that keeps an engine busy."""
    if task.searched.strata == ALL:
        return READS_WITH_ALL
    if backend == "cuda":
        from bwarp.allmap import find_cuda

        return find_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def steps_of(backend: str) -> ModuleType:
    """Return the module with the steps of the chain: `bwarp.allmap.find_cpu` or its CUDA twin."""
    return import_module(f"bwarp.allmap.find_{backend}")


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
    parts, located : int
        Parts of reads searched; their SA rows, all located.
    dropped_by_histogram, dropped_by_kmers, verified, confirmed : int
        Rows dropped by each bound, verified (a verified one stands for all that agree with it), and
        confirmed.
    loci : int
        Loci written; for a template with proper pairs, one per end of each pair.
    loci_over : int
        Loci of reads over the limit.
    pairs : int
        Proper pairs written.
    lowest_insert_size, highest_insert_size : int
        The range of insert sizes of proper pairs; 0 without pairs.
    reads_by_loci : list of list of int
        Reads with loci, aligned or over the limit, by the edits of their best locus and by their
        number of loci (`n_loci` of a `FoundChunk`): 1, 2, 3 to 4, 5 to 8, and so on.
    """

    reads: int = 0
    aligned: int = 0
    over: int = 0
    without: int = 0
    skipped: int = 0
    parts: int = 0
    located: int = 0
    dropped_by_histogram: int = 0
    dropped_by_kmers: int = 0
    verified: int = 0
    confirmed: int = 0
    loci: int = 0
    loci_over: int = 0
    pairs: int = 0
    lowest_insert_size: int = 0
    highest_insert_size: int = 0
    reads_by_loci: list[list[int]] = field(default_factory=list)

    def add(self, other: "Certificate") -> None:
        for name in (one.name for one in fields(self) if one.name != "reads_by_loci"):
            mine, others = getattr(self, name), getattr(other, name)
            setattr(self, name, max(mine, others) if "insert_size" in name else mine + others)
        strata = zip_longest(self.reads_by_loci, other.reads_by_loci, fillvalue=())
        self.reads_by_loci = [
            [a + b for a, b in zip_longest(mine, others, fillvalue=0)] for mine, others in strata
        ]

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
            single = [count for name, count in counts.items() if name != "reads_by_loci"]
            whole = type(certificate.reads_by_loci) is list and all(
                type(count) is int and 0 <= count < _MOST_COUNTED
                for count in chain(single, *certificate.reads_by_loci)
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
        Loci of reads within the limit.
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


class SearchedChunk(NamedTuple):
    """A chunk of reads and all their loci, before pairing and alignment.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, dtype=uint8
        The reads on both strands.
    loci : FoundLoci
    counts : ndarray, dtype=int64
        Counters of the search (`COUNTS`).
    align : function of FoundLoci
        Returns the `LocusAlignments` of any of these loci.
    """

    chunk: ReadChunk
    both: np.ndarray
    loci: FoundLoci
    counts: np.ndarray
    align: Callable[[FoundLoci], LocusAlignments]


@dataclass(frozen=True)
class LociEngine:
    """A genome and a finder, of the CPU or of GPUs, ready to find the loci of chunks of reads."""

    genome: TextAndGenome
    task: LociTask
    threads: int
    finder: LociFinder

    def find_loci(
        self,
        chunks: Iterator[ReadChunk],
        encode: Callable[[FoundChunk], Result] = lambda found: found,
    ) -> Iterator[tuple[Result, Certificate]]:
        """Find the loci of every chunk, in order, with several chunks in flight.

        Yields
        ------
        encoded : object
            The result of ``encode(found)``, called in the thread that found the loci.
        certificate : Certificate
        """
        pairing, finish = self.task.pairing, partial(self._finish, encode)
        known = pairing and pairing.insert
        estimate = pairing and self._estimate
        return find_and_finish(chunks, self._search, finish, self.threads, known, estimate)

    @on_timeline("find loci")
    def _search(self, chunk: ReadChunk) -> SearchedChunk:
        both = both_strands(chunk.codes, chunk.offsets)
        reads = both, blocks_of(both), chunk.offsets
        align = partial(self.finder.align_batch, *reads, self.task.extension)
        return SearchedChunk(chunk, both, *self.finder.find_batch(*reads), align)

    def _estimate(self, first: Sequence[SearchedChunk]) -> InsertSize:
        starts = self.genome.contig_starts
        sizes = [single_insert_sizes(one.loci, starts, pairs_left(one.chunk)) for one in first]
        return insert_size_of_parts(sizes, self.task.pairing.orientation)

    def _finish(
        self, encode: Callable[[FoundChunk], Result], one: SearchedChunk, insert: InsertSize | None
    ) -> tuple[Result, Certificate]:
        found = finish_chunk(self.genome, one, self.task, insert)
        return encode(found), found.certificate


def load(
    index: FMIndex, task: LociTask, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> LociEngine:
    """Load the genome and, in parallel, the index on up to `gpus` GPUs."""
    make_genome = partial(find_cpu.load, index.reference, threads)
    if backend != "cuda":
        genome = make_genome()
        return LociEngine(genome, task, threads, LociFinder(index, genome, task.searched))
    from bwarp.allmap import find_cuda
    from bwarp.gpu.several_gpus import on_each

    prepare = partial(on_each, partial(find_cuda.prepare, index, task.searched, threads), gpus)
    genome, devices = run_together([make_genome, prepare], 2)
    finders = [find_cuda.LociFinder(index, genome, device, task.searched) for device in devices]
    return LociEngine(genome, task, threads, find_cuda.FinderOnGpus(finders))


@on_timeline("align loci")
def finish_chunk(
    genome: TextAndGenome, one: SearchedChunk, task: LociTask, insert: InsertSize | None = None
) -> FoundChunk:
    """Align the loci of a chunk, and count the loci of reads with too many.

    Parameters
    ----------
    insert : InsertSize, optional
        For pairs, to list loci pair by pair.
    """
    chunk, both, loci, counts, align = one
    lengths, most = np.diff(chunk.offsets), task.max_places
    pairs = None
    if insert is None:
        n_loci = np.bincount(loci.reads, minlength=chunk.n_reads)
    else:
        loci, pairs, n_loci = pair_loci(
            loci, lengths, genome.contig_starts, insert, task.limits.strata, most
        )
    over = np.flatnonzero(n_loci > most) if most else np.empty(0, np.int64)
    if over.size and pairs is None:
        loci = _within(loci, n_loci <= most)
    alignments = align(loci)
    skipped = int((loci.searched < 0).sum())
    with_loci = int((n_loci > 0).sum())
    # Of all loci found: those of reads over the limit are left out above.
    by_loci = _reads_by_loci(one.loci, n_loci)
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
        reads_by_loci=by_loci,
        **dict(zip(COUNTS, counts.tolist(), strict=True)),
    )
    return FoundChunk(chunk, both, loci, alignments, n_loci, over, certificate, pairs)


def _reads_by_loci(loci: FoundLoci, n_loci: np.ndarray) -> list[list[int]]:
    """Count reads by the edits of their best locus and the power of two of their loci."""
    first = np.flatnonzero(np.diff(loci.reads, prepend=-1))
    if not first.size:
        return []
    best, numbers = np.minimum.reduceat(loci.distances, first), n_loci[loci.reads[first]]
    best, numbers = best[numbers > 0], numbers[numbers > 0]
    # The exponent of 0 is 0, of 1 it is 1, of 2 and 3 it is 2.
    powers = np.frexp((numbers - 1).astype(np.float64))[1]
    return [
        np.trim_zeros(np.bincount(powers[best == edits]), "b").tolist()
        for edits in range(int(best.max(initial=-1)) + 1)
    ]


def _within(loci: FoundLoci, kept: np.ndarray) -> FoundLoci:
    """Return the loci of the selected reads."""
    rows = kept[loci.reads]
    columns = [loci.reads, loci.strands, loci.starts, loci.ends, loci.distances]
    return FoundLoci(*(column[rows] for column in columns), loci.searched)
