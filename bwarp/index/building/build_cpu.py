"""Building an index on the CPU, in the memory that is given."""

from collections.abc import Callable

import numpy as np

from bwarp.index.building.bwt_cpu import make_bwt
from bwarp.index.building.packed_text_cpu import pack_text, reversed_text
from bwarp.index.building.prefix_table_cpu import prefix_table
from bwarp.index.building.suffix_buckets_cpu import workspace_bytes
from bwarp.index.building.suffix_sample_cpu import sample_bytes
from bwarp.index.fm_index import BWT
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference
from bwarp.runtime.threads import run_together

__all__ = ["build_bwts"]

#: However little memory is given, for each piece is a pass over the text.
MOST_PIECES = 64


def build_bwts(
    reference: Reference,
    parameters: IndexParameters,
    threads: int = 1,
    memory: int = 1 << 62,
    done: Callable[[str], None] = lambda step: None,
) -> tuple[BWT, BWT, np.ndarray, np.ndarray]:
    """Everything of an index that is made from its text.

    Parameters
    ----------
    reference : Reference
    parameters : IndexParameters
    threads : int
    memory : int
        Bytes that the process may take, the reference included. With less, the suffixes come
        in more pieces, each a pass over the text; the result is the same.
    done : function of str
        Called with every step that is done.

    Returns
    -------
    forward, reverse : BWT
    suffixes : ndarray, shape=(ceil(n / sa_rate),), dtype=uint32
        The sampled suffix array of the text.
    table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
    """
    text = pack_text(reference, threads)
    room = (memory - _fixed_bytes(text.size, parameters, threads)) // 4
    most = max(room, text.size // MOST_PIECES)
    (forward, suffixes), table = run_together(
        (
            lambda: make_bwt(text, parameters.occ_rate, parameters.sa_rate, most, threads),
            # Work for one thread, and little beside the rest.
            lambda: prefix_table(text, parameters.prefix_length),
        ),
        threads,
    )
    done("BWT of the text")
    reverse, _ = make_bwt(reversed_text(text, threads), parameters.occ_rate, 0, most, threads)
    done("BWT of the reversed text")
    return forward, reverse, suffixes, table


def _fixed_bytes(size: int, parameters: IndexParameters, threads: int) -> int:
    """What is in memory beside a piece of the suffix array: Python and its packages as well."""
    texts = 3 * size // 4
    bwts = 2 * (size // 4 + 16 * size // parameters.occ_rate)
    suffixes = 4 * size // parameters.sa_rate
    table = 12 * 4**parameters.prefix_length
    parts = texts + bwts + suffixes + table + sample_bytes(size) + workspace_bytes(threads)
    return parts + (256 << 20)
