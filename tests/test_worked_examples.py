"""The worked examples of the papers, with the corresponding code.

Drozd et al. have none. Figure 1 of Ren et al. only shows how an alignment is written: it is not
optimal for any scores of matches, mismatches and gaps.
"""

import numpy as np
import pytest

from bwarp.alignment.scoring import matrix_scoring
from bwarp.composition.histogram import count_bases
from bwarp.database_search import search_cpu
from bwarp.database_search.database import sorted_database
from bwarp.index.locate_cpu import locate
from bwarp.index.rank import extend_left
from bwarp.sequence import CODE_OF_BYTE
from tests.helpers.oracles.index_oracle import index_of

CATTATTAGGA = b"CATTATTAGGA"


def codes_of(text: bytes) -> np.ndarray:
    return CODE_OF_BYTE[np.frombuffer(text, np.uint8)]


@pytest.mark.parametrize("sa_rate", [1, 4])
def test_suffix_array_of_liu_and_schmidt(sa_rate):
    """Figure 1, except the row of $, and Figure 3: the interval of "tta", row by row."""
    index = index_of([CATTATTAGGA], sa_rate=sa_rate)
    rows = np.arange(len(CATTATTAGGA) + 1, dtype=np.uint32)
    assert locate(index, rows).tolist()[-11:] == [10, 7, 4, 1, 0, 9, 8, 6, 3, 5, 2]
    bwt = index.forward
    parts = bwt.words, bwt.separator_rows, bwt.groups, bwt.first_rows
    start, stop, sizes = 0, bwt.n_rows, []
    for base in reversed(codes_of(b"TTA").tolist()):
        start, stop = extend_left(*parts, base, start, stop)
        sizes.append(int(stop - start))
    assert sizes == [4, 2, 2]
    assert sorted(locate(index, np.arange(start, stop, dtype=np.uint32)).tolist()) == [2, 5]


def test_composition_of_breland():
    """Figures 2 and 3; the text of Figure 3 has one base less than its row of a's."""
    sequences = [codes_of(b"ACTTGAGC"), codes_of(b"ATTGTAAAACACAA"[1:10])]
    offsets = np.cumsum([0, *map(len, sequences)])
    assert count_bases(np.concatenate(sequences), offsets).tolist() == [[2, 2, 2, 2], [4, 1, 1, 3]]


@pytest.mark.parametrize("algorithm", ["profile", "prefix-scan"])
def test_score_of_chang_and_chen(monkeypatch, algorithm):
    """Figure 2: BLOSUM62; a gap of n costs 4 n."""
    scoring = matrix_scoring("BLOSUM62", 0, 4)
    letters = scoring.code_of_byte
    one, other = (letters[np.frombuffer(text, np.uint8)] for text in (b"GCAGGGTTAG", b"CCACCGGGGC"))
    database = sorted_database([other], [""])
    engine = search_cpu
    if algorithm == "prefix-scan":
        from bwarp.database_search import prefix_scan_cuda as engine
        from tests.helpers.gpu.emulated_alignment import pretend

        pretend(monkeypatch)
    (scores,) = engine.search_scores([one], database, scoring)
    assert scores.tolist() == [27]
