"""Concatenated references, and their prefix counts."""

import numpy as np

from bwarp.composition.references import gather_references, prefix_counts, window_count
from bwarp.io.fastx import read_sequences
from tests.helpers.oracles.composition_oracle import references_of


def test_records_of_all_batches_are_gathered(tmp_path):
    path = tmp_path / "r.fa"
    path.write_text("".join(f">r{i} more\n{'acgun'[: i % 6]}\n" for i in range(2000)))
    references = gather_references(read_sequences(path, chunk_bytes=1000))
    assert references.names == [f"r{i}" for i in range(2000)]
    assert np.diff(references.starts).tolist() == [i % 6 for i in range(2000)][:2000]
    start, stop = references.starts[5:7]
    assert references.codes[start:stop].tolist() == [0, 1, 2, 3, 4]


def test_no_records_are_no_references():
    references = gather_references([])
    assert references.names == []
    assert references.starts.tolist() == [0]


def test_prefix_counts_may_wrap_around():
    rng = np.random.default_rng(5)
    codes = rng.choice(5, 3000, p=(0.5, 0.2, 0.1, 0.1, 0.1)).astype(np.uint8)
    for dtype, length in ((np.uint8, 255), (np.uint8, 1), (np.uint16, 2000), (np.int32, 2999)):
        prefix = prefix_counts(codes, dtype)
        assert prefix.dtype == dtype
        for at in rng.integers(0, codes.size - length + 1, 20):
            window = codes[at : at + length].tolist()
            counts = prefix[:, at + length] - prefix[:, at]
            assert counts.tolist() == [window.count(base) for base in range(4)]


def test_windows_are_counted_within_references():
    references = references_of([[0] * 5, [], [1] * 3, [2] * 2])
    assert [window_count(references, length) for length in (1, 3, 5, 6)] == [10, 4, 1, 0]
