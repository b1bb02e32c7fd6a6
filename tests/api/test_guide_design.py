"""bwarp.design_guides and bwarp.pair_nickases return what bwarp guides writes."""

import pandas as pd
import pytest

import bwarp
from tests.helpers.programs.programs_here import run_here
from tests.offtargets.test_guide_design import files, index  # noqa: F401


@pytest.mark.parametrize("variants", ["", "phased.vcf", "alone.vcf"])
def test_the_tables_of_the_program(index, files, tmp_path, variants):  # noqa: F811
    (tmp_path / "x.bed").write_text("contig0\t50\t70\n")
    words = ("--mismatches", 4, "--exclude", tmp_path / "x.bed", "--region", "contig0")
    words += ("--annotation", files / "genes.bed", "--nickases", "--max-offset", 30)
    words += ("--variants", files / variants) if variants else ()
    run = ("list_guides", "--index", index, "--specificity", "-o", tmp_path / "o.tsv", *words)
    done = run_here(*run, folder=tmp_path)
    assert done.rc == 0, done.said
    table = bwarp.read_table(tmp_path / "o.tsv")
    guides = bwarp.design_guides(
        index, mismatches=4, exclude=tmp_path / "x.bed", region="contig0", threads=2,
        annotation=files / "genes.bed", variants=files / variants if variants else None,
    )  # fmt: skip
    assert len(guides) > 10
    pd.testing.assert_frame_equal(guides, table, atol=1e-6, rtol=0)
    pairs = bwarp.read_table(tmp_path / "o.nickases.tsv")
    assert len(pairs) > 3
    made = bwarp.pair_nickases(guides, max_offset=30)
    pd.testing.assert_frame_equal(made, pairs, atol=1e-6, rtol=0)


def test_no_guides(index):  # noqa: F811
    guides = bwarp.design_guides(index, pam="GATTACAGATTACA")
    assert len(guides) == 0
    assert len(bwarp.pair_nickases(guides)) == 0


def test_refusals(index):  # noqa: F811
    with pytest.raises(bwarp.UsageError, match="length 14 is not a whole number from 15 to 40"):
        bwarp.design_guides(index, length=14)
    for name in ("cfd_specificity", "mit_specificity"):
        with pytest.raises(bwarp.UsageError, match=f"the guides have no column {name}: give"):
            bwarp.pair_nickases(bwarp.design_guides(index).drop(columns=name))
