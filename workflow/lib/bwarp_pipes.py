"""Cores of the steps of a batch of allmap, which run at the same time if pipes connect them."""

from collections.abc import Collection

from bwarp.records.output_options import default_sort_bytes

#: Shares of 16 cores, by processor time (benchmarks/results/chain.jsonl).
SHARES = {
    "seed_reads": 3,
    "locate_seeds": 2,
    "filter_candidates": 3,
    "extend_candidates": 4,
    "write_alignments": 4,
}

FEWEST_CORES, MOST_CORES = 8, 32

#: The last step sorts in the memory for this many threads, although it has fewer in pipes.
_SORTING_THREADS = 8


def cores_in_pipes(cores: int | None) -> int:
    """Return how many cores of a machine the steps use; 0 if there are too few for pipes."""
    return min(cores, MOST_CORES) if cores and cores >= FEWEST_CORES else 0


def threads_in_pipes(step: str, steps: Collection[str], cores: int) -> int:
    """Return the threads of a step: its share of the cores of all steps in pipes."""
    return max(1, cores * SHARES[step] // sum(SHARES[one] for one in steps))


def sorting_flags() -> list[str]:
    """Return the flags of the last step for the memory in which it sorts."""
    return ["--sort-memory", str(default_sort_bytes(_SORTING_THREADS) >> 20)]
