"""CIGARs that tell matches from mismatches: = and X in place of M.

read       ACGTNACGT
genome     ACCTAACGT          9M -> 2=1X1=1X4=      an ambiguous base is a mismatch
"""

import numpy as np

from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import REVERSE, AlignmentRecords
from bwarp.mapping.output.record_text import is_match
from bwarp.mapping.reads.base_bits_cpu import differing
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count
from bwarp.runtime.uncounted import uncounted

__all__ = ["with_mismatches"]

_SAME, _DIFFERENT = 7, 8


def with_mismatches(
    records: AlignmentRecords, genome: Genome, offsets: np.ndarray, both: np.ndarray
) -> AlignmentRecords:
    """The records, and the hits they name, with = and X in their CIGARs.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    """

    def split(cigar_offsets, cigar, reads, reverse, positions):
        starts = offsets[reads] + reverse * (both.size // 2)
        counts = np.empty(reads.size, np.int64)
        nothing = np.empty(0, np.uint32)
        _split(genome.blocks, both, starts, positions, cigar_offsets, cigar, counts, nothing)
        out = np.empty(counts.sum(), np.uint32)
        _split(genome.blocks, both, starts, positions, cigar_offsets, cigar, counts, out)
        return np.concatenate([[0], np.cumsum(counts)]), out

    cigar_offsets, cigar = split(
        records.cigar_offsets, records.cigar, records.reads, records.flags & REVERSE != 0,
        records.positions,
    )  # fmt: skip
    hit_cigar_offsets, hit_cigar = split(
        records.secondary_cigar_offsets, records.secondary_cigar,
        np.repeat(records.reads, np.diff(records.secondary_offsets)),
        records.secondary_strands != 0, records.secondary_positions,
    )  # fmt: skip
    return records._replace(
        cigar_offsets=cigar_offsets,
        cigar=cigar,
        secondary_cigar_offsets=hit_cigar_offsets,
        secondary_cigar=hit_cigar,
    )


@compiled
def _split(blocks, both, starts, positions, offsets, cigar, counts, out):
    """Count the operations that every row gets, and write them where `out` has room."""
    blocks, both = uncounted((blocks, both))
    used = np.int64(0)
    for row in range(starts.size):
        read, position, first = starts[row], positions[row], used
        for at in range(offsets[row], offsets[row + 1]):
            length, operation = np.int64(cigar[at] >> 4), cigar[at] & 15
            if not is_match(operation):
                if out.size:
                    out[used] = cigar[at]
                used += 1
                # Clips, soft or hard, are bases of the read here.
                read += 0 if operation == 2 else length
                position += length if operation == 2 else 0
                continue
            last, run = np.int64(-1), np.int64(0)
            for begin in range(0, length, 64):
                n = min(np.int64(64), length - begin)
                bits = differing(blocks, position + begin, both, read + begin, n)
                done = np.int64(0)
                while done < n:
                    differs = np.int64(bits & np.uint64(1))
                    # The bases that are as this one is: the zeros, or ones, at the lower end.
                    others = ~bits if differs else bits
                    here = np.int64(population_count(~others & (others - np.uint64(1))))
                    here = min(here, n - done)
                    if differs == last:
                        run += here
                    else:
                        if run and out.size:
                            out[used] = run << 4 | (_SAME + last)
                        used += run > 0
                        last, run = differs, here
                    done += here
                    bits = bits >> np.uint64(here) if here < 64 else np.uint64(0)
            if run and out.size:
                out[used] = run << 4 | (_SAME + last)
            used += run > 0
            read += length
            position += length
        counts[row] = used - first
