"""The names of what is in a record of SAM and BAM: flags, tags, kinds of tags, and fixed fields.

Kernels and compiled functions use these numbers as constants.
"""

# Flags.
PAIRED, PROPER, UNMAPPED, MATE_UNMAPPED = 1, 2, 4, 8
REVERSE, MATE_REVERSE, FIRST, LAST = 16, 32, 64, 128
SECONDARY, SUPPLEMENTARY = 256, 2048


def tag(name: str) -> int:
    """The number whose two bytes in BAM, the lower first, are the name of a tag."""
    return int.from_bytes(name.encode(), "little")


# Tags of the SAM specification: edits and where they are, the mate's CIGAR and mapping quality, the
# score, the read group, the other parts of the read, its loci and the number of this one.
NM, MD, MC, MQ, AS = tag("NM"), tag("MD"), tag("MC"), tag("MQ"), tag("AS")
RG, SA, NH, HI = tag("RG"), tag("SA"), tag("NH"), tag("HI")
# Tags of bwa: the score of the best other hit, other hits, the share of a better hit on an ALT
# contig, loci with fewest edits and the others.
XS, XA, PA, X0, X1 = tag("XS"), tag("XA"), tag("pa"), tag("X0"), tag("X1")
# A tag of samtools: the mate's sum of qualities.
MS = tag("ms")
# Tags of minimap2 in PAF: ambiguous bases, the type of the alignment, its divergence, its CIGAR.
NN, TP, DE, CG = tag("nn"), tag("tp"), tag("de"), tag("cg")
# Tags of bwarp allmap: edits of the locus, edits that were searched, whether there are more loci
# than the limit, and the number of a pair in PAF.
XD, XE, XO, PR = tag("Xd"), tag("Xe"), tag("Xo"), tag("pr")

# Kinds of tags: a character, a number in text, text, hexadecimal digits, a float32, an array.
CHARACTER, INTEGER, TEXT, HEXADECIMAL, FLOAT, ARRAY = b"AiZHfB"
# Kinds of whole numbers in BAM, by their bytes: not negative, and negative.
UINT8, UINT16, UINT32 = b"CSI"
INT8, INT16, INT32 = b"csi"

#: The size before each record in BAM, in bytes.
SIZE_BYTES = 4
#: A record without its size, name, CIGAR, bases, qualities and tags: no record is shorter.
FIXED_BYTES = 32
#: Where fixed fields begin, behind the size.
CONTIG_AT, POSITION_AT, NAME_BYTES_AT, OPERATIONS_AT, FLAG_AT = 0, 4, 8, 12, 14
#: The quality of each base of a read without qualities, in BAM.
NO_QUALITY = 255
