"""Pairwise alignment: batches of pairs with CIGAR, GATK's own alignment, and database search.

`scoring` says how an alignment is scored and which of its ends are free, `pairs` how a batch of
pairs and its answers lie in memory, and which of several equally good alignments is the answer.
The engines stand side by side: `pairs_cpu` and `pairs_cuda`, `gatk_cpu` and `gatk_cuda`,
`search_cpu` and `search_cuda`.
"""
