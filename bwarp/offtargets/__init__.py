"""Off-targets: every site of CRISPR guides in a genome, complete by definition.

A site is a contig, a strand and where the PAM lies. Its protospacer begins beside the PAM and goes
outwards; the guide is aligned to it from the PAM on. An alignment is a row of columns:

    guide   PAM| A C G - T A C      a DNA bulge: a base of the genome that the guide lacks
    site    PAM| A C T G T - C      a mismatch; an RNA bulge: a base of the guide that it lacks

It counts if it has no more mismatches, DNA bulges and RNA bulges, each counted in bases, than asked
for. Both kinds may be in one site. The first and the last column pair two bases: a gap beside the
PAM, or at the far end, is the same as a shorter or longer site, and is no alignment. A DNA bulge
and an RNA bulge side by side are written with the DNA bulge nearer to the PAM.

No site, its PAM included, holds an ambiguous base or crosses a contig's border.

Of the alignments of a site the best one has the fewest edits, then the fewest bases in bulges, and
of these the gaps nearest to the PAM: the first column in which two alignments differ decides, a DNA
bulge before an RNA bulge before a pair.
"""
