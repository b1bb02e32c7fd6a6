"""Parquet files have the same bytes for any division of their rows into parts."""

import io

import numpy as np
import pytest

from bwarp.io.parquet_rows import ParquetRows

COLUMNS = b"query\tstart\tstrand\tcontig\tposition\tvalue\n"
POSITIONS = np.random.default_rng(1).integers(0, 10**9, 300_000)


def written(size: int) -> bytes:
    file = io.BytesIO()
    with ParquetRows(file, COLUMNS, "int64", ["chr1"]) as table:
        for start in range(0, POSITIONS.size, size):
            positions = POSITIONS[start : start + size]
            zeros = np.zeros_like(positions)
            table.write((["q"], zeros, positions, zeros, zeros, positions, positions))
    return file.getvalue()


@pytest.mark.parametrize("size", [997, 70_000])
def test_parts_change_nothing(size):
    assert written(size) == written(POSITIONS.size)
