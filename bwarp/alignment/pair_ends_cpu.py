"""Align batches of pairs on the CPU: scores, ends or whole alignments, by the rules of pairs.py."""

import numpy as np

from bwarp.alignment.batches_cpu import find_ends, pair_rules
from bwarp.alignment.pairs import Alignments, Ends, PairBatch, check_pairs
from bwarp.alignment.scoring import Mode, Scoring
from bwarp.alignment.traceback_cpu import trace_alignments


def pair_scores(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> np.ndarray:
    """Compute the best score of each pair.

    Returns
    -------
    scores : ndarray, shape=(count,), dtype=int32
    """
    check_pairs(pairs)
    return find_ends(pairs, pair_rules(scoring, mode), threads, both_ends=False).scores


def pair_ends(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Ends:
    """Find the best score of each pair and where its alignment ends."""
    check_pairs(pairs)
    return find_ends(pairs, pair_rules(scoring, mode), threads)


def pair_alignments(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Alignments:
    """Find the best alignment of each pair, with its CIGAR."""
    check_pairs(pairs)
    rules = pair_rules(scoring, mode)
    return trace_alignments(pairs, rules, find_ends(pairs, rules, threads), threads)
