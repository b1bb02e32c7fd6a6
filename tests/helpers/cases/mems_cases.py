"""References, indexes and query texts made from lists of code arrays."""

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.parameters import IndexParameters
from bwarp.mems.query_text import make_query_text
from bwarp.reference import make_reference


def reference_of(contigs):
    starts = np.concatenate([[0], np.cumsum([len(contig) for contig in contigs])])
    names = tuple(f"contig{i}" for i in range(len(contigs)))
    return make_reference(names, starts, np.concatenate(contigs))


def index_of(contigs, occ_rate=64, sa_rate=2, prefix_length=3):
    parameters = IndexParameters(occ_rate, sa_rate, prefix_length)
    return build_index(reference_of(contigs), parameters, "cpu", with_reverse=True)


def text_of(queries, strands, min_length):
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    codes = np.concatenate([np.empty(0, np.uint8), *queries]).astype(np.uint8)
    return make_query_text(codes, offsets, strands, min_length)
