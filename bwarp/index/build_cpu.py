"""Build an index on the CPU within a limit of memory."""

import numpy as np

from bwarp.index.bwt_cpu import make_bwt, prefix_table
from bwarp.index.fm_index import BWT
from bwarp.index.packed_text_cpu import pack_text, reversed_text
from bwarp.index.parameters import IndexParameters
from bwarp.index.suffix_array_cpu import sample_bytes, workspace_bytes
from bwarp.reference import Reference
from bwarp.runtime.threads import run_together

#: The minimum rows per piece for any limit of memory, because each piece is a pass over the text.
MOST_PIECES = 64


def build_forward(
    reference: Reference, parameters: IndexParameters, threads: int = 1, memory: int = 1 << 62
) -> tuple[BWT, np.ndarray, np.ndarray]:
    """Build everything that depends on the forward text.

    Parameters
    ----------
    reference : Reference
    parameters : IndexParameters
    threads : int
    memory : int
        Maximum bytes of the process, including the reference. With less, there are more pieces,
        each a pass over the text; the result is the same.

    Returns
    -------
    forward : BWT
    suffixes : ndarray, shape=(ceil(n / sa_rate),), dtype=uint32
        The sampled suffix array of the text.
    table : ndarray, shape=(4**prefix_length, 2), dtype=uint32
    """
    occ_rate, sa_rate = parameters.occ_rate, parameters.sa_rate
    text = pack_text(reference, threads)
    beside = 4 * text.size // sa_rate + 12 * 4**parameters.prefix_length
    most = _most_rows(text.size, occ_rate, threads, memory - beside)
    (forward, suffixes), table = run_together(
        (
            lambda: make_bwt(text, occ_rate, sa_rate, most, threads),
            # Takes one thread, and little time relative to the rest.
            lambda: prefix_table(text, parameters.prefix_length),
        ),
        threads,
    )
    return forward, suffixes, table


def build_reverse(
    reference: Reference, occ_rate: int, threads: int = 1, memory: int = 1 << 62
) -> BWT:
    """Build the BWT of the reversed text; parameters as in `build_forward`."""
    text = reversed_text(pack_text(reference, threads), threads)
    most = _most_rows(text.size, occ_rate, threads, memory)
    reverse, _ = make_bwt(text, occ_rate, 0, most, threads)
    return reverse


def _most_rows(size: int, occ_rate: int, threads: int, memory: int) -> int:
    """Return the suffix array rows that fit in memory next to everything else, Python included."""
    genome_and_text = 2 * size // 4
    bwt = size // 4 + 16 * size // occ_rate
    sorting = sample_bytes(size) + workspace_bytes(threads)
    room = memory - (genome_and_text + bwt + sorting + (256 << 20))
    return max(room // 4, size // MOST_PIECES)
