"""All sequences of a FASTA or FASTQ file in memory, parsed in all threads.

    file       >b two.. ARND.. >a.. WU..     cut at records into texts of about equal size
    texts      |------------|-----------|    each is parsed by one thread
    codes      A R N D  W U                  of each text, which is then dropped
    names      b a

The codes of the texts are copied to their final positions in all threads: end to end, or in another
order, such as by length.
"""

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bwarp.io.fastx import RecordText, SequenceBatch, of_records, parse_records
from bwarp.io.names import Names, query_names
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.threads import for_each_range, put_stretches
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import CODE_OF_BYTE

#: Bytes of a file per text, which stays in the cache of a core while it is parsed.
TEXT_BYTES = 1 << 20


@dataclass(frozen=True)
class SequenceTable:
    """The sequences of a file in the order of the file.

    Attributes
    ----------
    parts : list of tuple of ndarray
        The codes of consecutive sequences, end to end, uint8, and their offsets, int64.
    names : Names
        The first word of each header; may be empty.
    """

    parts: list[tuple[np.ndarray, np.ndarray]]
    names: Names

    @property
    def count(self) -> int:
        return len(self.names.bounds)

    @property
    def lengths(self) -> np.ndarray:
        """The length of each sequence, shape=(count,), dtype=int64."""
        return np.concatenate([np.empty(0, np.int64), *(np.diff(edges) for _, edges in self.parts)])

    @property
    def offsets(self) -> np.ndarray:
        """Where each sequence starts and the last one ends, shape=(count + 1,), dtype=int64."""
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    def listed(self) -> list[np.ndarray]:
        """Return the codes of each sequence, as views."""
        return [
            part[start:stop]
            for part, edges in self.parts
            for start, stop in itertools.pairwise(edges.tolist())
        ]

    @on_timeline("join sequences")
    def codes(self, starts: np.ndarray, threads: int = 1) -> np.ndarray:
        """Return all codes, uint8, with sequence i at ``starts[i]``.

        Parameters
        ----------
        starts : ndarray, shape=(count,), dtype=int64
            ``offsets[:-1]``, or the starts in another order of the sequences.
        """
        records = np.cumsum([0, *(edges.size - 1 for _, edges in self.parts)])
        codes = np.empty(sum(part.size for part, _ in self.parts), np.uint8)

        def put(first: int, stop: int) -> None:
            for number in range(first, stop):
                part, edges = self.parts[number]
                put_stretches(part, edges, codes, starts[records[number] : records[number + 1]], 1)

        for_each_range(put, len(self.parts), threads, smallest=1)
        return codes


def read_table(
    path: str | os.PathLike,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    threads: int = 1,
    text_bytes: int = TEXT_BYTES,
) -> SequenceTable:
    """Read all sequences of a FASTA or FASTQ file; its errors are those of `read_sequences`.

    Parameters
    ----------
    path : path-like
        Plain, gzip, bzip2, xz or zstd; ``-`` is standard input.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of each letter; 255 for a byte that is not allowed in a sequence.
    threads : int
        Threads that parse; with more than one, two others read the file and cut it.
    text_bytes : int
        Approximate number of bytes that a thread parses at a time.
    """

    def parsed(records: RecordText) -> tuple[np.ndarray, np.ndarray, Names]:
        return _without_text(parse_records(path, records, code_of_byte))

    return _joined(of_records(parsed, path, text_bytes, threads))


def table_of(batches: Iterable[SequenceBatch]) -> SequenceTable:
    """Return the sequences of batches that are in memory."""
    return _joined(map(_without_text, batches))


def _without_text(batch: SequenceBatch) -> tuple[np.ndarray, np.ndarray, Names]:
    return batch.codes, batch.offsets, query_names(batch).part(0, batch.count)


def _joined(parts: Iterable[tuple[np.ndarray, np.ndarray, Names]]) -> SequenceTable:
    codes, texts, bounds, n_bytes = [], [np.empty(0, np.uint8)], [np.empty((0, 2), np.int64)], 0
    for of_part, offsets, names in parts:
        codes.append((of_part, offsets))
        texts.append(names.text)
        bounds.append(names.bounds + n_bytes)
        n_bytes += names.text.size
    return SequenceTable(codes, Names(read_only(np.concatenate(texts)), np.concatenate(bounds)))
