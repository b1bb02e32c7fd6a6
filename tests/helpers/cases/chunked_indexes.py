"""Indexes in chunks of small references, and their chunks on several GPUs."""

import itertools
from dataclasses import replace

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.chunk_store import open_index, write_chunks
from bwarp.index.chunks import chunks_of, stretch
from bwarp.index.description import OVERLAP
from bwarp.index.parameters import IndexParameters
from bwarp.index.store import new_index_folder

PARAMETERS = IndexParameters(occ_rate=64, sa_rate=2, prefix_length=3)


def save_chunks(reference, chunk_bases, folder, with_reverse=True):
    """Write and open an index in chunks."""

    def indexes():
        for chunk in chunks_of(reference, chunk_bases, OVERLAP):
            bases = stretch(reference, chunk.start, chunk.end)
            yield chunk, build_index(bases, PARAMETERS, "cpu", with_reverse=with_reverse)

    with new_index_folder(folder) as part:
        write_chunks(reference, chunk_bases, indexes(), part)
    return open_index(folder)


def over_gpus(prepared, n_gpus):
    """Distribute prepared chunks over this many GPUs; some may get none."""
    chunks = list(itertools.chain(*prepared.on_each))
    edges = np.linspace(0, len(chunks), n_gpus + 1).astype(int)
    parts = [chunks[first:last] for first, last in itertools.pairwise(edges)]
    return replace(prepared, on_each=[part for part in parts if part] or parts[:1])
