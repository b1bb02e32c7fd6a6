"""In-silico PCR: the products of pairs of primers in a genome.

    forward strand   5' ....F >>>>................................. 3'
    reverse strand   3' ..................................<<<< R... 5'
    product                 [--------------------------------]

A primer binds where it lies on a strand with few enough mismatches, and none among its last bases,
at the 3' end. Two that face each other on one contig, close enough, make a product, which reaches
from the 5' end of one to that of the other and holds both.
"""
