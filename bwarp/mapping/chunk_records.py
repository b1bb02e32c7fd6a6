"""Return the records of a mapped chunk in the form that the user requested."""

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.pipeline import MappedChunk
from bwarp.records.alignment_records import AlignmentRecords, ReadAlignments
from bwarp.records.record_layout import alignment_records
from bwarp.records.record_text import with_mismatches


def chunk_records(
    genome: Genome, done: MappedChunk, soft_clip: bool = False, eqx: bool = False
) -> AlignmentRecords:
    """Return the records of a chunk.

    Parameters
    ----------
    soft_clip : bool
        Soft-clip supplementary and secondary records, too.
    eqx : bool
        Write = and X in CIGARs instead of M.
    """
    alignments = ReadAlignments(
        done.mapped, done.primary, done.supplementary, done.secondary, done.better_scores,
        done.recorded,
    )  # fmt: skip
    records = alignment_records(genome.contig_starts, done.chunk, alignments, soft_clip)
    if eqx:
        return with_mismatches(records, genome, done.chunk.offsets, done.both)
    return records
