"""In-silico PCR: the products of pairs of primers in a genome.

    forward strand   5' ....F >>>>................................. 3'
    reverse strand   3' ..................................<<<< R... 5'
    product                 [--------------------------------]

A primer binds where it matches a strand with few mismatches and none among its last bases, at the
3' end. Two primers that face each other on one contig at a short enough distance make a product,
which extends from the 5' end of one to the 5' end of the other and includes both.
"""
