"""The table of sizes, against the arrays and the paper's formulas."""

import math
import re

import pytest

from bwarp.index.parameters import parse_size_table, part_sizes, size_table
from bwarp.index.store import load_index, save_index
from tests.helpers.oracles.index_oracle import HOSTILE, index_of


@pytest.mark.parametrize(("occ_rate", "sa_rate", "prefix_length"), [(32, 1, 0), (128, 7, 4)])
def test_every_number(tmp_path, occ_rate, sa_rate, prefix_length):
    index = index_of(HOSTILE["with gaps"], occ_rate, sa_rate, prefix_length)
    table = size_table(index)
    lines = table.splitlines()
    reference, n = index.reference, index.forward.n_rows
    assert lines[0] == (f"contigs 5   bases 294   segments {reference.n_segments}   rows {n}")
    assert (
        lines[1]
        == f"occ_rate (q) {occ_rate}   sa_rate (p) {sa_rate}   prefix_length {prefix_length}"
    )
    rows = {line[:18].strip(): line[18:].split() for line in lines[4:]}
    bits = math.ceil(math.log2(n))
    expected = {
        "forward BWT": index.forward.blocks.nbytes + index.forward.separator_rows.nbytes,
        "reverse BWT": index.reverse.blocks.nbytes + index.reverse.separator_rows.nbytes,
        "suffix array": index.suffix_array.nbytes,
        "prefix table": index.prefix_table.nbytes,
        "packed genome": reference.packed.nbytes + 12 * reference.n_segments,
    }
    for name, size in expected.items():
        assert int(rows[name][0].replace(",", "")) == size, name
        assert float(rows[name][1]) == pytest.approx(size / n, abs=0.0005)
    assert int(rows["total"][0].replace(",", "")) == sum(expected.values())
    direction = round((4 * n * bits / occ_rate + 2 * n) / 8)
    assert int(rows["forward BWT"][2].replace(",", "")) == direction
    assert int(rows["reverse BWT"][2].replace(",", "")) == direction
    assert int(rows["suffix array"][2].replace(",", "")) == round(n * bits / sa_rate / 8)
    assert rows["prefix table"][2] == "-"
    assert not re.search(r" $", table, re.MULTILINE)
    save_index(index, tmp_path / "index")
    assert size_table(load_index(tmp_path / "index")) == table
    assert parse_size_table(table) == part_sizes(index)
