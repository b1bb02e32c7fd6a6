"""Off-targets: find every site of CRISPR guides in a genome, with a complete search.

A site is a contig, a strand and the position of the PAM. Its protospacer begins next to the PAM and
extends away from it; the guide is aligned to it from the PAM on. An alignment is a row of columns:

    guide   PAM| A C G - T A C      a DNA bulge: a base of the genome that the guide lacks
    site    PAM| A C T G T - C      a mismatch; an RNA bulge: a base of the guide that the
                                    genome lacks

An alignment counts if its mismatches, DNA bulges and RNA bulges, each counted in bases, are within
the limits. A site may have both kinds of bulges. The first and the last column pair two bases: a
gap next to the PAM, or at the far end, is equivalent to a shorter or longer site, and is not an
alignment. If a DNA bulge and an RNA bulge are adjacent, the DNA bulge is written nearer to the PAM.

No site, including its PAM, contains an ambiguous base or crosses a contig border.

The best alignment of a site has the fewest edits, then the fewest bases in bulges, then the gaps
nearest to the PAM: the first column in which two alignments differ decides, with a DNA bulge before
an RNA bulge before a pair.
"""
