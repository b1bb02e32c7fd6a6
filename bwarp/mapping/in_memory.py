"""Mapping of reads that are in memory, as in a notebook.

mapper = bwarp.Mapper("genome.index")
lines = mapper.map(["ACGTTGCA...", "TTGACC..."])
pandas.DataFrame(vars(lines))
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bwarp.alignment.pairs import cigar_text
from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import load_index
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import alignment_records
from bwarp.mapping.parameters import mapping_parameters
from bwarp.mapping.pipeline import map_chunks
from bwarp.mapping.reads.read_chunks import LONGEST_READ, ReadChunk
from bwarp.reference import codes_of
from bwarp.runtime.threads import available_threads
from bwarp.sequence import encode

__all__ = ["MappedLines", "Mapper"]


@dataclass(frozen=True)
class MappedLines:
    """The lines that SAM would have: one a read, and one more for each further part of it.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Which read a line is of. Of pairs, 2 i is the first end of pair i and 2 i + 1 the second.
    flags : ndarray, shape=(n,), dtype=uint16
        SAM's.
    contigs : ndarray, shape=(n,), dtype=str
        The contig's name; "" for an unmapped read without a mapped mate.
    positions : ndarray, shape=(n,), dtype=int64
        Of the first aligned base in its contig, from 0; -1 where there is no contig.
    mapping_qualities : ndarray, shape=(n,), dtype=uint8
    cigars : ndarray, shape=(n,), dtype=str
    scores, others : ndarray, shape=(n,), dtype=int32
        Of the alignment, and of the best other place of the same bases (0: none).
    template_lengths : ndarray, shape=(n,), dtype=int64
    """

    reads: np.ndarray
    flags: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    mapping_qualities: np.ndarray
    cigars: np.ndarray
    scores: np.ndarray
    others: np.ndarray
    template_lengths: np.ndarray


class Mapper:
    """Maps reads to an index, with parameters that stay the same.

    Parameters
    ----------
    index : FMIndex or path
        An index, or the folder that index_reference.py wrote.
    threads : int, optional
        All that this process may use, if not given.
    **parameters
        As `mapping_parameters` takes them: match, mismatch, mode, insert_size, ...
    """

    def __init__(
        self, index: FMIndex | str | os.PathLike, threads: int | None = None, **parameters
    ):
        self.index = index if isinstance(index, FMIndex) else load_index(index)
        reference = self.index.reference
        self.genome = Genome(codes_of(reference), reference.contig_starts)
        self.parameters = mapping_parameters(**parameters)
        self.threads = threads or available_threads()

    def map(
        self, reads: Iterable[str | bytes], mates: Iterable[str | bytes] | None = None
    ) -> MappedLines:
        """Map reads; with `mates`, pairs: mate i is the other end of read i.

        Raises
        ------
        InputError
            If there are not as many mates as reads, or a read is longer than are mapped.
        ValueError
            For a letter that is none of a nucleotide.
        """
        chunk = _chunk_of(list(reads), None if mates is None else list(mates))
        starts = self.genome.contig_starts
        (done,) = map_chunks(self.index, self.genome, iter([chunk]), self.parameters, self.threads)
        records = alignment_records(
            starts, chunk, done.mapped, done.choice, done.supplementary, done.alternatives
        )
        offsets = records.cigar_offsets
        names = np.array([*self.index.reference.names, ""])
        return MappedLines(
            reads=records.reads,
            flags=records.flags,
            contigs=names[records.contigs],
            positions=np.where(
                records.contigs < 0, -1, records.positions - starts[records.contigs]
            ),
            mapping_qualities=records.mapping_qualities,
            cigars=np.array(
                [
                    cigar_text(records.cigar[offsets[row] : offsets[row + 1]])
                    for row in range(records.n_rows)
                ],
                str,
            ),
            scores=records.scores,
            others=records.others,
            template_lengths=records.template_lengths,
        )


def _chunk_of(reads: list[str | bytes], mates: list[str | bytes] | None) -> ReadChunk:
    ends = 1
    if mates is not None:
        if len(mates) != len(reads):
            raise InputError(
                f"{len(reads):,} reads but {len(mates):,} mates: give one mate for every read"
            )
        ends = 2
        reads = [read for pair in zip(reads, mates, strict=True) for read in pair]
    longest = max(map(len, reads), default=0)
    if longest > LONGEST_READ:
        raise InputError(
            f"a read has {longest:,} bases, and the longest that are mapped have {LONGEST_READ:,}: "
            "map longer reads with a mapper made for them, such as minimap2"
        )
    codes = [encode(read.encode() if isinstance(read, str) else read) for read in reads]
    return ReadChunk(
        codes=np.concatenate([*codes, np.empty(0, np.uint8)]),
        offsets=np.concatenate([[0], np.cumsum([part.size for part in codes])]).astype(np.int64),
        qualities=None,
        text=np.empty(0, np.uint8),
        names=np.zeros((len(codes) // ends, 2), np.int64),
        ends=ends,
        first_template=0,
    )
