"""The end of a run of mapping: mapped chunks are encoded in threads, written and counted."""

from collections.abc import Callable, Iterator

from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_file import alignment_file
from bwarp.mapping.output.alignment_records import alignment_records
from bwarp.mapping.output.output_options import AlignmentOutput, mapping_program
from bwarp.mapping.output.statistics import add_chunk, empty_statistics
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import MappedChunk
from bwarp.reference import Reference
from bwarp.runtime.threads import in_order

__all__ = ["write_mapped"]

#: Chunks that are encoded at a time, whatever the threads: so many keep up with any mapper.
MOST_ENCODED = 4


def write_mapped(
    output: AlignmentOutput,
    parameters: MappingParameters,
    reference: Reference,
    genome: Genome,
    mapped_chunks: Iterator[MappedChunk],
    report: Callable[[int, str], None],
    threads: int = 1,
) -> dict:
    """Write mapped chunks; returns the counts of what became of their reads.

    Parameters
    ----------
    report : function
        Called with the number of reads that are done, and what else there is to say, after every
        chunk.
    """
    statistics = empty_statistics()

    def count_duplicates(count: int) -> None:
        statistics["duplicates"] = count

    program = mapping_program(parameters, output)
    with alignment_file(output, program, reference, genome, threads, count_duplicates) as writer:

        def encode(done: MappedChunk) -> tuple[MappedChunk, list]:
            records = alignment_records(
                genome.contig_starts, done.chunk, done.mapped, done.primary, done.supplementary,
                done.secondary,
            )  # fmt: skip
            return done, writer.encode(done.chunk, done.both, records)

        for done, encoded in in_order(encode, mapped_chunks, min(threads, MOST_ENCODED)):
            writer.write(encoded)
            add_chunk(statistics, done)
            share = 100 * statistics["mapped"] / max(statistics["reads"], 1)
            report(statistics["reads"], f"{share:.1f} % mapped")
    return statistics
