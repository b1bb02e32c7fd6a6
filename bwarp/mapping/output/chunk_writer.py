"""The end of a run of mapping: what is mapped is encoded and counted in threads, and written."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bwarp.io.bed_regions import read_regions
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_file import alignment_file
from bwarp.mapping.output.alignment_records import selected_rows
from bwarp.mapping.output.chunk_records import chunk_records
from bwarp.mapping.output.output_options import AlignmentOutput, mapping_program
from bwarp.mapping.output.record_regions import in_regions, joined_regions
from bwarp.mapping.output.statistics import add_counts, counts_of, empty_statistics
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import MappedChunk
from bwarp.reference import Reference

__all__ = ["EncodedChunk", "write_mapped"]


class EncodedChunk(NamedTuple):
    """The records of some reads, and what became of these.

    Attributes
    ----------
    records : object
        As the writer of the file takes them.
    counts : dict
        See statistics.py.
    reads : ndarray, shape=(n_records,), dtype=int64
        The number of each record's read in its chunk; empty where nobody asks.
    """

    records: object
    counts: dict
    reads: np.ndarray


def write_mapped(
    output: AlignmentOutput,
    parameters: MappingParameters,
    reference: Reference,
    genome: Genome,
    mapped_chunks: Callable[..., Iterator[EncodedChunk]],
    report: Callable[[int, str], None],
    threads: int = 1,
) -> dict:
    """Write mapped chunks; returns the counts of what became of their reads.

    Parameters
    ----------
    mapped_chunks : function
        Called with a function of a `MappedChunk`, ``then=``, and with the form of records that a
        GPU may write, ``form=``; gives the `EncodedChunk` of each chunk, in order.
    report : function
        Called with the number of reads that are done, and what else there is to say, after every
        chunk.
    """
    statistics = empty_statistics()

    def count_duplicates(count: int) -> None:
        statistics["duplicates"] = count

    regions = None
    if output.regions_file is not None:
        regions = joined_regions(read_regions(output.regions_file, reference))
    program = mapping_program(parameters, output)
    with alignment_file(output, program, reference, genome, threads, count_duplicates) as writer:

        def encode(done: MappedChunk) -> EncodedChunk:
            records = chunk_records(genome, done, output.soft_clip, output.eqx)
            if regions is not None:
                records = selected_rows(records, in_regions(records, done.chunk.ends, regions))
            encoded = writer.encode(done.chunk, done.both, records)
            return EncodedChunk(encoded, counts_of(done, genome), records.reads)

        for encoded in mapped_chunks(then=encode, form=writer.form):
            writer.write(encoded.records)
            add_counts(statistics, encoded.counts)
            share = 100 * statistics["mapped"] / max(statistics["reads"], 1)
            report(statistics["reads"], f"{share:.1f} % mapped")
    return statistics
