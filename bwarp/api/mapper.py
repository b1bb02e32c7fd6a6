"""bwarp.Mapper: map reads in memory or in files, with the same records as bwarp map.

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
from bwarp.api.sequences import Sequences, check_files, chunks_of_reads
from bwarp.bam.fields import SECONDARY, SUPPLEMENTARY, UNMAPPED
from bwarp.counted import counted
from bwarp.index.alt_contigs import chosen_alt_contigs
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.engine import load, reads_a_chunk
from bwarp.mapping.parameters import mapping_parameters, secondary_records
from bwarp.mapping.pipeline import MappedChunk, chunk_records
from bwarp.options.mapping import MAP

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class MappedRecords:
    """SAM records as arrays: the primary record and supplementary records of each read.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
        Number of the read; for pairs, 2 i is the first end of pair i and 2 i + 1 the second.
    names : ndarray, shape=(n,), dtype=str
        Name of the read; reads of a list are named by their number.
    flags : ndarray, shape=(n,), dtype=uint16
        SAM flags.
    contigs : ndarray, shape=(n,), dtype=str
        Name of the contig; "" for an unmapped read without a mapped mate.
    positions : ndarray, shape=(n,), dtype=int64
        0-based position of the first aligned base in the contig; -1 without a contig.
    mapping_qualities : ndarray, shape=(n,), dtype=uint8
    cigars : ndarray, shape=(n,), dtype=str
    scores, suboptimal_scores : ndarray, shape=(n,), dtype=int32
        Tags AS and XS of SAM; 0 if there is no suboptimal hit.
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
        """Return the number of records."""
        return len(self.reads)

    def __repr__(self) -> str:
        primary = np.flatnonzero(self.flags & (SECONDARY | SUPPLEMENTARY) == 0)
        mapped = np.count_nonzero(self.flags[primary] & UNMAPPED == 0)
        reads = counted(primary.size, "read")
        return f"<{counted(len(self), 'record')} of {reads}, {mapped:,} mapped>"

    def to_pandas(self) -> "pd.DataFrame":
        """Return a data frame with one row per record: read, name, flag, contig, position, ..."""
        import pandas as pd

        columns = {}
        for name, values in vars(self).items():
            one = "mapping_quality" if name == "mapping_qualities" else name[:-1]
            columns[one] = pd.Series(values, dtype="str" if values.dtype.kind == "U" else "int64")
        return pd.DataFrame(columns)


class Mapper:
    """Maps reads to an index with fixed parameters.

    Parameters
    ----------
    index : Index, or the folder of one
    threads : int, optional
        Number of threads; by default all that this process may use.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    mode : {"local", "end-to-end"}
        Whether ends of reads may be clipped.
    match, mismatch, gap_open, gap_extend, clip : int, optional
        Scores and costs; by default those of bwarp map, which scale with `match`.
    min_score : int, optional
        Minimum score of a reported alignment; by default 30 times `match`.
    insert_size : (float, float), optional
        Mean and standard deviation; by default estimated from the first pairs.
    orientation : {"FR", "RF", "FF", "RR"}, optional
        Orientation of pairs; by default that of the majority of the first pairs.
    hic : bool, default: False
        Map both ends of pairs independently, as `bwa mem -5SP` does.
    alt : path or str, optional
        ALT contigs, instead of those listed in the index: a file of names, names separated by
        commas, or "none".
    all : bool, default: False
        Add a secondary record (flag 256) for every other hit.
    max_secondary : int, optional
        With `all`, maximum number of secondary records per read, best first.
    soft_clip : bool, default: False
        Soft-clip supplementary records, too.
    eqx : bool, default: False
        Use = and X in CIGARs instead of M.
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
        alt: str | os.PathLike | None = None,
        all: bool = False,
        max_secondary: int | None = None,
        soft_clip: bool = False,
        eqx: bool = False,
    ):
        self.index = arrays_of(index)
        self.threads = threads_or_all(threads)
        max_secondary = MAP["max_secondary"].check(max_secondary)
        scores = {"match": match, "mismatch": mismatch, "clip": clip}
        scores |= {"gap_open": gap_open, "gap_extend": gap_extend}
        if isinstance(alt, os.PathLike):
            check_files(alt)
        typed = None if alt is None else os.fspath(alt)
        self.parameters = mapping_parameters(
            mode=MAP["mode"].check(mode),
            **{name: MAP[name].check(score) for name, score in scores.items()},
            least_score=MAP["min_score"].check(min_score),
            insert_size=insert_size,
            orientation=MAP["orientation"].check(orientation),
            hic=hic,
            alt=chosen_alt_contigs(typed, self.index.reference),
            secondary_records=secondary_records(all, max_secondary),
        )
        self._form = {"soft_clip": soft_clip, "eqx": eqx}
        self.backend, self._engine = prepared(
            backend, lambda engine: load(self.index, self.parameters, engine, self.threads)
        )
        self.genome = self._engine.genome

    def __repr__(self) -> str:
        contigs = len(self.index.reference.names)
        return f"<bwarp.Mapper to {counted(contigs, 'contig')} on {self.backend}>"

    def map(self, reads: Sequences, mates: Sequences | None = None) -> MappedRecords:
        """Map reads; with `mates`, pairs: mate i is the other end of read i.

        Parameters
        ----------
        reads, mates : path, or sequences in memory
            Either both files or both in memory.

        Raises
        ------
        InputError
            If the numbers of reads and mates differ, a read is too long, or a letter is not a
            nucleotide.
        """
        size = reads_a_chunk(self.backend, self.threads)
        chunks = chunks_of_reads(reads, mates, size, self.threads)
        return _joined(map(self._records, self._engine.map(chunks)))

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
