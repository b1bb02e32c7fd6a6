"""Add hits on ALT contigs to the records of their reads, as separate records or in XA."""

import numpy as np

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.final_alignments import align_hits
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import AltHits
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.records.alignment_records import SecondaryHits, Supplementary, joined_alignments


def with_alt_hits(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    found: AltHits,
    supplementary: Supplementary,
    secondary: SecondaryHits,
    parameters: MappingParameters,
) -> tuple[Supplementary, SecondaryHits]:
    """Return the supplementary and secondary hits, with those found on ALT contigs added."""
    lines = align_hits(genome, both, offsets, hits, found.lines, parameters)
    named = align_hits(genome, both, offsets, hits, found.secondary, parameters)
    n_before = len(supplementary.reads)
    return (
        Supplementary(
            np.concatenate([supplementary.reads, hits.reads[found.lines].astype(np.int64)]),
            joined_alignments(supplementary.alignments, lines),
            np.concatenate([supplementary.qualities, found.qualities]),
            np.concatenate([supplementary.suboptimal, found.suboptimal]),
            # As in bwa, because their bases are useful without the primary record.
            np.concatenate([supplementary.soft, np.ones(len(found.lines), bool)]),
            np.concatenate([supplementary.hits, found.lines]),
        ),
        SecondaryHits(
            np.concatenate([secondary.reads, hits.reads[found.secondary].astype(np.int64)]),
            joined_alignments(secondary.alignments, named),
            np.concatenate(
                [
                    secondary.named_by,
                    np.where(found.named_by < 0, -1, found.named_by + n_before),
                ]
            ),
        ),
    )
