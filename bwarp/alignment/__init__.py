"""Pairwise alignment: batches of pairs with CIGAR, and alignment by the rules of GATK.

`scoring` defines scores and free ends; `pairs` defines the memory layout of a batch and its
results, and which of several equally good alignments is reported. Each engine has its own modules:
`pair_ends_cpu` and `pair_ends_cuda`, `gatk_cpu` and `gatk_cuda`.
"""
