"""bwarp.find_products returns the rows that bwarp primers writes."""

import pandas as pd
import pytest

import bwarp

OPPOSITE = str.maketrans("ACGT", "TGCA")


def opposite(letters):
    return letters.translate(OPPOSITE)[::-1]


@pytest.fixture(scope="module")
def pairs(contigs):
    one, two = contigs["one"], contigs["two"]
    mutated = two[100:103] + ("A" if two[103] != "A" else "C") + two[104:120]
    return {
        "7": (one[10:30], opposite(one[400:420])),
        "NA": (opposite(two[900:920]), mutated),
        "none": ("ACGT" * 5, "TTTT" * 5),
    }


@pytest.mark.parametrize("more", [{}, {"mismatches": 0, "with_itself": True}, {"max_product": 700}])
def test_the_rows_of_the_program(pairs, wrote, index, tmp_path, more):
    lines = (f"{name}\t{forward}\t{reverse}\n" for name, (forward, reverse) in pairs.items())
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    words = []
    for name, value in more.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [value])
    table = wrote(
        "find_products", "o.tsv", "--index", "genome.index", "--pairs", "pairs.tsv", *words
    )
    assert len(table) == (1 if more else 2)
    for given in (pairs, tmp_path / "pairs.tsv", "pairs.tsv"):
        found = bwarp.find_products(index, given, backend="cpu", threads=1, **more)
        pd.testing.assert_frame_equal(found, table)


def test_pairs_of_a_list_are_numbered(pairs, index):
    found = bwarp.find_products(index, list(pairs.values()))
    assert found[["pair", "contig", "start", "end", "strand"]].values.tolist() == [
        ["0", "one", 10, 420, "+"],
        ["1", "two", 100, 920, "-"],
    ]
    assert bwarp.find_products(index, []).dtypes.tolist() == found.dtypes.tolist()


@pytest.mark.parametrize(
    ("pairs", "more", "message"),
    [
        ([("ACGTACGT",)], {}, r"pairs\[0\] is not a pair of str: give \(forward, reverse\)"),
        ({"a": "ACGTACGT"}, {}, r"pairs\['a'\] is not a pair of str"),
        ({"a": ("ACGTACGT", 3)}, {}, r"pairs\['a'\] is not a pair of str"),
        ({"a": ("ACGTACGT", "ACGTACG!")}, {}, "pairs, pair a, reverse primer: '!' at position 8"),
        ([], {"mismatches": 9}, "mismatches 9 is not a whole number from 0 to 4"),
        ([], {"min_product": 9, "max_product": 8}, "--min-product 9 is greater than"),
        ("pairs", {}, "pairs 'pairs' is not an existing file"),
    ],
)
def test_refusals(index, pairs, more, message):
    with pytest.raises(bwarp.InputError, match=message):
        bwarp.find_products(index, pairs, **more)
