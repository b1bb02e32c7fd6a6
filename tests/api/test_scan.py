"""bwarp.scan: the rows of the program's tables."""

from fractions import Fraction

import pytest
from pandas.testing import assert_frame_equal

import bwarp
from bwarp.errors import InputError, UsageError

OPTIONS = {"backend": "cpu", "threads": 1}


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ((), {}),
        (("--regions",), {"regions": True}),
        (("--best", 3), {"best": 3}),
        (("--align", "-T", -9), {"align": True, "min_score": -9}),
        (
            ("--align", "--best", 40, "-A", 2, "-B", 3, "-O", 5, "-E", 2, "-T", -30),
            {"align": True, "best": 40, "match": 2, "mismatch": -3, "gap_open": 5, "gap_extend": 2}
            | {"min_score": -30},
        ),
    ],
)
@pytest.mark.parametrize("ending", ["tsv", "parquet"])
def test_the_rows_of_the_table(queries, contigs, wrote, ending, words, options):
    arguments = ("--queries", "Q.fa", "--reference", "R.fa", "--similarity", "0.93", *words)
    output = f"hits.{ending}"
    table = wrote("scan_composition", output, *arguments, Q=queries, R=contigs)
    assert len(table) > 15
    found = bwarp.scan(queries, contigs, similarity=0.93, **options, **OPTIONS)
    # The text has six decimals, truncated.
    assert_frame_equal(found, table, rtol=0, atol=1e-6)
    again = bwarp.scan("Q.fa", "R.fa", similarity=Fraction("93/100"), **options, **OPTIONS)
    assert_frame_equal(again, found)


def test_counts(queries, contigs, wrote):
    arguments = ("--queries", "Q.fa", "--reference", "R.fa", "--similarity", "0.9", "--count-only")
    chosen = {"similarity": "0.9", "count_only": True, **OPTIONS}
    found = bwarp.scan(queries, contigs, **chosen)
    for output in ("n.tsv", "n.parquet"):
        table = wrote("scan_composition", output, *arguments, Q=queries, R=contigs)
        assert_frame_equal(found, table)


def test_bed_of_both_programs(queries, contigs, index, wrote):
    arguments = ("--queries", "Q.fa", "--reference", "R.fa", "--similarity", "0.95")
    bed = wrote("scan_composition", "hits.bed.gz", *arguments, Q=queries, R=contigs)
    hits = bwarp.scan(queries, contigs, similarity=0.95, **OPTIONS)
    assert bed.name.tolist() == hits["query"].tolist()
    assert bed.start.tolist() == hits.position.tolist()
    assert set(bed.strand) == {"."}
    arguments = ("--queries", "Q.fa", "--index", "genome.index")
    bed = wrote("find_seeds", "hits.bed", *arguments, Q=queries)
    hits = bwarp.find_seeds(index, queries, **OPTIONS)
    assert bed.contig.tolist() == hits.contig.tolist()
    assert bed.start.tolist() == hits.position.tolist()
    assert bed.strand.tolist() == hits.strand.tolist()
    assert bed.columns.tolist() == ["contig", "start", "end", "name", "score", "strand"]


def test_nothing_and_refusals(contigs):
    assert bwarp.scan([], contigs, similarity=1, **OPTIONS).shape == (0, 5)
    assert bwarp.scan([], contigs, similarity=1, regions=True, **OPTIONS).shape == (0, 7)
    assert bwarp.scan([], contigs, similarity=1, align=True, **OPTIONS).shape == (0, 9)
    assert bwarp.scan([], contigs, similarity=1, count_only=True, **OPTIONS).shape == (0, 3)
    for queries, reference, options, message in (
        (["A"], [], {}, "reference: no sequences: give at least one"),
        (["A"], {"a": "A"}, {"similarity": 2}, "similarity '2' is not a number above 0"),
        (
            ["A"],
            {"a": "A"},
            {"best": 1, "regions": True},
            "--best cannot be combined with --regions",
        ),
        (["A"], {"a": "A"}, {"best": 0}, "best 0 is not a whole number from 1 to"),
        (
            ["A"],
            {"a": "A"},
            {"best": 1, "count_only": True},
            "--count-only cannot be combined with --best",
        ),
        (
            ["A"],
            {"a": "A"},
            {"align": True, "regions": True},
            "--align cannot be combined with --regions or --count-only",
        ),
        (["A"], {"a": "A"}, {"top": 1}, "--top requires --align"),
        (["A"], {"a": "A"}, {"align": True, "top": 0}, "top 0 is not a whole number from 1 to"),
        (["A"], {"a": "A"}, {"algorithm": "x"}, "algorithm 'x' is not one of auto, classes"),
        ("ACGT", {"a": "A"}, {}, "queries 'ACGT' is not an existing file"),
        (
            ["A", "C"],
            {"a": "AACC"},
            {"max_hits": 3},
            "4 hits exceed max_hits 3: raise similarity, use best or count_only, or raise max_hits",
        ),
    ):
        with pytest.raises((InputError, UsageError)) as error:
            bwarp.scan(queries, reference, **{"similarity": 1, **OPTIONS} | options)
        assert str(error.value).startswith(message)
