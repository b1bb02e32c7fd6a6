"""bwarp.find_loci returns the loci that bwarp allmap writes."""

import random

import pandas as pd
import pytest

import bwarp
from bwarp.index.store import save_index
from tests.helpers.oracles.loci_oracle import index_of_codes
from tests.helpers.programs.programs_here import run_here


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return an index with repeats and 40 pairs, in files and in memory."""
    folder = tmp_path_factory.mktemp("loci")
    rng = random.Random(4)
    genome = [rng.randrange(4) for _ in range(3000)]
    genome[2000:2300] = genome[500:800]
    save_index(index_of_codes([genome[:1500], genome[1500:]]), folder / "index")
    reads: tuple[dict, dict] = ({}, {})
    for number in range(40):
        at = rng.randrange(400, 900) if number % 3 else rng.randrange(1500, 2700)
        ends = [genome[at : at + 40], [3 - b for b in genome[at : at + 150][::-1][:40]]]
        ends[0][10:11] = [] if number % 4 == 0 else [rng.randrange(4)]
        for end in (0, 1):
            reads[end][f"t{number}"] = "".join("ACGT"[code] for code in ends[end])
    for end, texts in enumerate(reads, 1):
        lines = (f">{name}\n{text}\n" for name, text in texts.items())
        (folder / f"{end}.fa").write_text("".join(lines))
    return folder, reads


def written(folder, *options) -> pd.DataFrame:
    done = run_here(
        "find_alignments", "--index", folder / "index", "-o", folder / "o.tsv", *options,
        folder=folder,
    )  # fmt: skip
    assert done.rc == 0, done.said
    return bwarp.read_table(folder / "o.tsv")


def test_the_rows_of_single_reads(given):
    folder, (reads, _) = given
    table = written(folder, "-1", folder / "1.fa", "-e", 3)
    assert len(table) > len(reads)
    for source in (folder / "1.fa", reads):
        loci = bwarp.find_loci(folder / "index", source, edits=3)
        pd.testing.assert_frame_equal(loci, table)
    table = written(folder, "-1", folder / "1.fa", "-e", "5%", "--report", "best", "--gaps", 1)
    loci = bwarp.find_loci(folder / "index", reads, edits="5%", report="best", gaps=1)
    pd.testing.assert_frame_equal(loci, table)


def test_the_rows_of_pairs(given):
    folder, (reads, mates) = given
    files = ("-1", folder / "1.fa", "-2", folder / "2.fa", "-e", 3)
    table = written(folder, *files, "-I", "150,5")
    assert (table.pair > 1).any()
    loci = bwarp.find_loci(folder / "index", reads, mates, edits=3, insert_size=(150, 5))
    pd.testing.assert_frame_equal(loci, table)
    pd.testing.assert_frame_equal(
        bwarp.find_loci(folder / "index", reads, mates, edits=3), written(folder, *files)
    )


@pytest.mark.parametrize("paired", [False, True])
def test_the_rows_of_alignments_by_scores(given, paired):
    folder, (reads, mates) = given
    files = ["-1", folder / "1.fa", "-2", folder / "2.fa"] if paired else ["-1", folder / "1.fa"]
    table = written(folder, *files, "-e", 3, "--extension", "local", "-B", 3, "-O", 2)
    loci = bwarp.find_loci(
        folder / "index", reads, mates if paired else None, edits=3, extension="local",
        mismatch=-3, gap_open=2,
    )  # fmt: skip
    pd.testing.assert_frame_equal(loci, table)
    assert (loci.score > 0).all()
    assert (loci.locus_edits >= loci.distance).any()


def test_paf_is_read_by_its_tags(given):
    folder, _ = given
    files = ("-1", folder / "1.fa", "-2", folder / "2.fa", "-e", 3, "-I", "150,5")
    table = written(folder, *files)
    run_here(
        "find_alignments", "--index", folder / "index", "-o", folder / "o.paf", *files,
        folder=folder,
    )  # fmt: skip
    paf = bwarp.read_table(folder / "o.paf")
    assert paf.NM.tolist() == table.distance.tolist()
    assert paf.AS.tolist() == (-table.distance).tolist()
    assert paf.pr.tolist() == table.pair.tolist()
    assert paf.cg.tolist() == table.cigar.tolist()


def test_reads_without_rows_are_warned_about(given):
    folder, (reads, _) = given
    with pytest.warns(UserWarning, match=r"reads? ha(ve|s) more than 1 locus and no rows"):
        loci = bwarp.find_loci(folder / "index", reads, edits=3, max_places=1)
    assert not loci["query"].duplicated().any()
    with pytest.warns(UserWarning, match="1 read was not searched because it has no more bases"):
        assert bwarp.find_loci(folder / "index", ["ACG"], edits=3).empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"edits": "x"}, "'x' is neither a whole number nor a percentage such as 3%"),
        ({"edits": 2, "report": "some"}, "'some' is not all, best, or strata:N such as strata:1"),
        ({"edits": 2, "gaps": 3}, "--gaps 3 is greater than --edits 2"),
        ({"edits": 2, "match": 2}, "match requires the extension semiglobal or local"),
        ({"edits": 2, "extension": "global"}, "extension 'global' is not one of edits, semiglobal"),
        ({"edits": 2, "extension": "local", "match": "2"}, "match '2' is not a whole number"),
        ({"edits": 2, "gaps": "1"}, "gaps '1' is not a whole number from 0 to 31"),
    ],
)
def test_refusals(given, options, message):
    with pytest.raises(bwarp.UsageError, match=message.replace("(", r"\(")):
        bwarp.find_loci(given[0] / "index", ["ACGT"], **options)
