"""bwarp.Mapper: reads in memory or in files to the records that map_reads.py would write.

mapper = bwarp.Mapper("genome.index")
records = mapper.map(["ACGTTGCA...", "TTGACC..."])
records.to_pandas()
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bwarp.alignment.pair_text import cigar_texts
from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_of
from bwarp.api.sequences import Sequences, chunks_of_reads
from bwarp.bam.fields import SECONDARY, SUPPLEMENTARY, UNMAPPED
from bwarp.counted import counted
from bwarp.index.alt_contigs import chosen_alt_contigs
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.chunk_records import chunk_records
from bwarp.mapping.engine import load, map_chunks, reads_a_chunk
from bwarp.mapping.parameters import mapping_parameters, secondary_records
from bwarp.mapping.pipeline import MappedChunk
from bwarp.options.mapping import MAP

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class MappedRecords:
    """SAM records as arrays: a primary record for each read, and its supplementary records.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Which read a record is of. Of pairs, 2 i is the first end of pair i and 2 i + 1 the second.
    names : ndarray, shape=(n,), dtype=str
        The read's name; that of a read of a list is its number.
    flags : ndarray, shape=(n,), dtype=uint16
        SAM's.
    contigs : ndarray, shape=(n,), dtype=str
        The contig's name; "" for an unmapped read without a mapped mate.
    positions : ndarray, shape=(n,), dtype=int64
        Of the first aligned base in its contig, from 0; -1 where there is no contig.
    mapping_qualities : ndarray, shape=(n,), dtype=uint8
    cigars : ndarray, shape=(n,), dtype=str
    scores, suboptimal_scores : ndarray, shape=(n,), dtype=int32
        SAM's AS and XS; 0 for no suboptimal hit.
    template_lengths : ndarray, shape=(n,), dtype=int64
    """

    reads: np.ndarray
    names: np.ndarray
    flags: np.ndarray
    contigs: np.ndarray
    positions: np.ndarray
    mapping_qualities: np.ndarray
    cigars: np.ndarray
    scores: np.ndarray
    suboptimal_scores: np.ndarray
    template_lengths: np.ndarray

    def __len__(self) -> int:
        """How many records there are."""
        return len(self.reads)

    def __repr__(self) -> str:
        primary = np.flatnonzero(self.flags & (SECONDARY | SUPPLEMENTARY) == 0)
        mapped = np.count_nonzero(self.flags[primary] & UNMAPPED == 0)
        reads = counted(primary.size, "read")
        return f"<{counted(len(self), 'record')} of {reads}, {mapped:,} mapped>"

    def to_pandas(self) -> "pd.DataFrame":
        """A data frame with a row for each record: read, name, flag, contig, position, ..."""
        import pandas as pd

        columns = {}
        for name, values in vars(self).items():
            one = "mapping_quality" if name == "mapping_qualities" else name[:-1]
            columns[one] = pd.Series(values, dtype="str" if values.dtype.kind == "U" else "int64")
        return pd.DataFrame(columns)


class Mapper:
    """Maps reads to an index, with parameters that stay the same.

    Parameters
    ----------
    index : Index, or the folder of one
    backend, mode, match, mismatch, gap_open, gap_extend, clip, min_score, orientation, hic
        As of map_reads.py.
    insert_size : (float, float), optional
        Mean and standard deviation; of pairs estimated if not given.
    all, max_secondary, soft_clip, eqx
        As of map_reads.py: which secondary hits get records (flag 256), and how they are written.
    alt : str, optional
        The ALT contigs, instead of those that the index knows: a file, names with commas between
        them, or none.
    threads : int, optional
        All that this process may use, if not given.
    """

    def __init__(
        self,
        index: Index | FMIndex | str | os.PathLike,
        threads: int | None = None,
        *,
        backend: str = "auto",
        mode: str = "local",
        match: int | None = None,
        mismatch: int | None = None,
        gap_open: int | None = None,
        gap_extend: int | None = None,
        clip: int | None = None,
        min_score: int | None = None,
        insert_size: tuple[float, float] | None = None,
        orientation: str | None = None,
        hic: bool = False,
        alt: str | None = None,
        all: bool = False,
        max_secondary: int | None = None,
        soft_clip: bool = False,
        eqx: bool = False,
    ):
        self.index = arrays_of(index)
        self.threads = threads_or_all(threads)
        max_secondary = MAP["max_secondary"].check(max_secondary)
        self.parameters = mapping_parameters(
            mode=MAP["mode"].check(mode),
            match=match,
            mismatch=mismatch,
            gap_open=gap_open,
            gap_extend=gap_extend,
            clip=clip,
            least_score=min_score,
            insert_size=insert_size,
            orientation=MAP["orientation"].check(orientation),
            hic=hic,
            alt=chosen_alt_contigs(alt, self.index.reference),
            secondary_records=secondary_records(all, max_secondary),
        )
        self._form = {"soft_clip": soft_clip, "eqx": eqx}
        self.backend, (self.genome, self._kept) = prepared(
            backend, lambda engine: load(self.index, engine, self.threads)
        )

    def __repr__(self) -> str:
        contigs = len(self.index.reference.names)
        return f"<bwarp.Mapper to {counted(contigs, 'contig')} on {self.backend}>"

    def map(self, reads: Sequences, mates: Sequences | None = None) -> MappedRecords:
        """Map reads; with `mates`, pairs: mate i is the other end of read i.

        Parameters
        ----------
        reads, mates : path, or sequences in memory
            Both as files, or both in memory.

        Raises
        ------
        InputError
            If there are not as many mates as reads, a read is longer than are mapped, or has a
            letter that is none of a nucleotide.
        """
        size = reads_a_chunk(self.backend, self.threads)
        chunks = chunks_of_reads(reads, mates, size, self.threads)
        mapped = map_chunks(
            self.index, self.genome, chunks, self.parameters, self.backend, self.threads, self._kept
        )
        return _joined(map(self._records, mapped))

    def _records(self, done: MappedChunk) -> MappedRecords:
        chunk = done.chunk
        starts = self.genome.contig_starts
        records = chunk_records(self.genome, done, **self._form)
        offsets = records.cigar_offsets
        templates = np.array([chunk.name(template) for template in range(chunk.n_templates)], str)
        contigs = np.array([*self.index.reference.names, ""])
        return MappedRecords(
            reads=chunk.first_template * chunk.ends + records.reads,
            names=templates[records.reads // chunk.ends],
            flags=records.flags,
            contigs=contigs[records.contigs],
            positions=np.where(
                records.contigs < 0, -1, records.positions - starts[records.contigs]
            ),
            mapping_qualities=records.mapping_qualities,
            cigars=np.array([text or "*" for text in cigar_texts(offsets, records.cigar)], str),
            scores=records.scores,
            suboptimal_scores=records.suboptimal,
            template_lengths=records.template_lengths,
        )


def _joined(parts: Iterable[MappedRecords]) -> MappedRecords:
    types = (np.int64, str, np.uint16, str, np.int64, np.uint8, str, np.int32, np.int32, np.int64)
    none = MappedRecords(*(np.empty(0, of) for of in types))
    columns = zip(*(vars(part).values() for part in (none, *parts)), strict=True)
    return MappedRecords(*map(np.concatenate, columns))
