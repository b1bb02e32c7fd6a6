"""bwarp.list_guides returns the guides that bwarp guides lists."""

import pandas as pd
import pytest

import bwarp


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"pam": "TTTV,NRG", "pam_side": 5, "length": 17},
        {"pam": "none", "min_gc": 40, "max_gc": 60, "without_tttt": True},
        {"region": "two:1,001-1,200", "bed": "r.bed"},
    ],
)
def test_the_guides_of_the_program(wrote, genome, index, contigs, tmp_path, more):
    (tmp_path / "r.bed").write_text("one\t100\t400\n")
    words = []
    for name, value in more.items():
        words += [f"--{name.replace('_', '-')}"] + ([] if value is True else [value])
    table = wrote("list_guides", "o.txt", "--fasta", genome, *words)
    assert len(table) > 10
    for given in (genome, str(genome), contigs, index, tmp_path / "genome.index"):
        guides = bwarp.list_guides(given, threads=1, **more)
        pd.testing.assert_frame_equal(guides[["guide", "sequence"]], table)
        if more.get("pam") != "none":
            assert set(guides.pam.str.len()) <= {3, 4}


def test_regions_as_a_list_and_no_guide(contigs):
    guides = bwarp.list_guides(contigs, region=["one:1-300", "two"])
    assert set(guides.guide.str.split(":").str[0]) == {"one", "two"}
    none = bwarp.list_guides(contigs, region="one:1-5")
    assert none.empty
    assert none.dtypes.tolist() == guides.dtypes.tolist()


def test_guides_are_searched(index):
    guides = bwarp.list_guides(index, region="one:1-300").set_index("guide").sequence
    sites = bwarp.find_offtargets(index, guides, mismatches=0)
    assert {*sites.guide} == {*guides.index}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"region": "three"}, "--region three: no contig three"),
        ({"min_gc": 50, "max_gc": 40}, "--min-gc 50 is greater than --max-gc 40"),
        ({"length": 9}, "length 9 is not a whole number from 15 to 40"),
        ({"pam": 3}, "pam 3 is not a str"),
    ],
)
def test_refusals(contigs, more, message):
    with pytest.raises(bwarp.InputError, match=message):
        bwarp.list_guides(contigs, **more)
