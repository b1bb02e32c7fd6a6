"""Constants of SAM and BAM records: flags, tags, kinds of tags, and fixed fields.

Kernels and compiled functions use these numbers as constants. Tags and their kinds are arguments of
functions; they are int64, because Numba compiles a function again for each Python number.
"""

import numpy as np

# Flags.
PAIRED, PROPER, UNMAPPED, MATE_UNMAPPED = 1, 2, 4, 8
REVERSE, MATE_REVERSE, FIRST, LAST = 16, 32, 64, 128
SECONDARY, QC_FAILED, DUPLICATE, SUPPLEMENTARY = 256, 512, 1024, 2048


def tag(name: str) -> np.int64:
    """Return the name of a tag as the little-endian number that BAM stores."""
    return np.int64(int.from_bytes(name.encode(), "little"))


# Tags of the SAM specification: edits and their positions, the mate's CIGAR and mapping quality,
# the score, the read group, the other parts of the read, the number of its loci, and which locus
# this is.
NM, MD, MC, MQ, AS = tag("NM"), tag("MD"), tag("MC"), tag("MQ"), tag("AS")
RG, SA, NH, HI = tag("RG"), tag("SA"), tag("NH"), tag("HI")
# Tags of bwa: the score of the best other hit, the other hits, the ratio to a better hit on ALT,
# the number of loci with the fewest edits, and the number of other loci.
XS, XA, PA, X0, X1 = tag("XS"), tag("XA"), tag("pa"), tag("X0"), tag("X1")
# A tag of samtools: the mate's sum of qualities.
MS = tag("ms")
# A tag of Picard: the kind of a duplicate.
DT = tag("DT")
# Tags of minimap2 in PAF: ambiguous bases, the type of the alignment, its divergence, its CIGAR.
NN, TP, DE, CG = tag("nn"), tag("tp"), tag("de"), tag("cg")
# Tags of bwarp allmap: edits of the locus, maximum edits of the search, whether there are more loci
# than the limit, and the number of a pair in PAF.
XD, XE, XO, PR = tag("Xd"), tag("Xe"), tag("Xo"), tag("pr")

# Kinds of tags: a character, a number in text, text, hexadecimal digits, a float32, an array.
CHARACTER, INTEGER, TEXT, HEXADECIMAL, FLOAT, ARRAY = map(np.int64, b"AiZHfB")
# Kinds of integers in BAM, by their size: unsigned, then signed.
UINT8, UINT16, UINT32 = map(np.int64, b"CSI")
INT8, INT16, INT32 = map(np.int64, b"csi")

#: Bytes of the block size before each BAM record.
SIZE_BYTES = 4
#: Bytes of the fixed fields after the block size, the minimum length of a record.
FIXED_BYTES = 32
#: Offsets of fixed fields after the block size.
CONTIG_AT, POSITION_AT, NAME_BYTES_AT, QUALITY_AT = 0, 4, 8, 9
OPERATIONS_AT, FLAG_AT, LENGTH_AT = 12, 14, 16
MATE_CONTIG_AT, MATE_POSITION_AT, TEMPLATE_LENGTH_AT = 20, 24, 28
#: What BAM stores as the quality of each base of a read without qualities.
NO_QUALITY = 255
