"""bwarp.find_seeds: the rows of the program's tables."""

import pytest
from pandas.testing import assert_frame_equal

import bwarp
from bwarp.errors import InputError, UsageError

OPTIONS = {"backend": "cpu", "threads": 1}


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet"])
def test_the_rows_of_the_table(index, queries, wrote, ending):
    arguments = ("--index", "genome.index", "--queries", "Q.fa", "--mismatches", 2)
    table = wrote("find_seeds", f"hits.{ending}", *arguments, Q=queries)
    assert set(table.strand) == {"+", "-"}
    assert {"NA", "007", 'a"b', "1e5"} <= set(table["query"])
    for given in (queries, "Q.fa"):
        assert_frame_equal(bwarp.find_seeds(index, given, mismatches=2, **OPTIONS), table)
    assert_frame_equal(bwarp.find_seeds("genome.index", queries, mismatches=2, **OPTIONS), table)
    assert table.dtypes.map(str).tolist() == ["str", "int64", "str", "str", "int64", "int64"]


def test_cut_kmers_and_their_counts(index, contigs, wrote):
    cut = {"long": contigs["one"][:500] + "N" + contigs["two"][:100], "other": contigs["two"]}
    arguments = ("--index", "genome.index", "--queries", "Q.fa", "-k", 12, "--step", 7)
    chosen = {"k": 12, "step": 7, "mismatches": 1, **OPTIONS}
    table = wrote("find_seeds", "hits.tsv", *arguments, "--mismatches", 1, Q=cut)
    assert_frame_equal(bwarp.find_seeds(index, cut, **chosen), table)
    counts = wrote("find_seeds", "n.tsv", *arguments, "--mismatches", 1, "--count-only", Q=cut)
    assert_frame_equal(bwarp.find_seeds(index, cut, count_only=True, **chosen), counts)
    assert counts.hits.sum() == len(table)


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_an_index_in_chunks_has_the_same_hits(index, chunks, queries, backend):
    for chosen in ({"mismatches": 2}, {"k": 12, "step": 5}, {"count_only": True}):
        expected = bwarp.find_seeds(index, queries, **chosen, **OPTIONS)
        assert len(expected)
        for given in (chunks, bwarp.Index.open(chunks)):
            found = bwarp.find_seeds(given, queries, **chosen, **OPTIONS | {"backend": backend})
            assert_frame_equal(found, expected)


def test_kmers_without_rows_are_warned_about(index, contigs, wrote):
    start = contigs["one"][:8]
    given = {"often": start, "short": "ACGT", "n": "ACGTNNNNNNNACGT", "x": "A" * 65, "y": ""}
    with pytest.warns(UserWarning, match="rows|searched") as warned:
        hits = bwarp.find_seeds(index, given, mismatches=4, max_hits=3, **OPTIONS)
    assert len(hits) == 0
    assert [str(one.message) for one in warned] == [
        "1 k-mer has more than 3 hits and no rows: use max_hits=0 to list all hits, or "
        "count_only=True to count them",
        "queries not searched: short (shorter than the k-mer length), "
        "n (stands for more than 4096 sequences), x (longer than 64), and 1 more",
    ]
    assert {one.filename for one in warned} == {__file__}
    # The other tables of the program have the same rows.
    arguments = ("--index", "genome.index", "--queries", "Q.fa", "--mismatches", 4)
    table = wrote("find_seeds", "hits.tsv", *arguments, "--max-hits", 3, Q=given)
    assert_frame_equal(table, hits)
    over, skipped = bwarp.read_table("hits.over.tsv"), bwarp.read_table("hits.skipped.tsv")
    assert skipped["query"].tolist() == ["short", "n", "x", "y"]
    assert skipped.reason[1] == "stands for more than 4096 sequences"
    with pytest.warns(UserWarning, match="not searched"):
        counts = bwarp.find_seeds(index, given, mismatches=4, count_only=True, **OPTIONS)
    assert_frame_equal(counts, over)


def test_nothing(index):
    hits = bwarp.find_seeds(index, [], **OPTIONS)
    assert hits.shape == (0, 6)
    assert hits.position.dtype == "int64"
    assert bwarp.find_seeds(index, [], count_only=True, **OPTIONS).shape == (0, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 7}, "k 7 is not a whole number from 8 to 64"),
        ({"step": 2}, "--step requires -k"),
        ({"mismatches": 5}, "mismatches 5 is not a whole number from 0 to 4"),
        ({"max_hits": -1}, "max_hits -1 is not a whole number"),
        ({"algorithm": "x"}, "algorithm 'x' is not one of schemes, backtracking"),
        ({"locate": "gpu"}, "locate gpu requires a GPU"),
        ({"backend": "gpu"}, "backend 'gpu' is not one of auto, cpu, cuda"),
        ({"threads": 0}, "threads 0 is not a whole number"),
    ],
)
def test_options_that_cannot_be_used(index, options, message):
    with pytest.raises(UsageError) as error:
        bwarp.find_seeds(index, ["ACGTACGT"], **OPTIONS | options)
    assert str(error.value).startswith(message)


def test_queries_that_cannot_be_used(index):
    with pytest.raises(UsageError, match="is not an existing file"):
        bwarp.find_seeds(index, "ACGTACGT")
    with pytest.raises(
        InputError, match=r"^queries\[1\]: 'Q' at position 4 is not a valid sequence letter"
    ):
        bwarp.find_seeds(index, ["ACGTACGT", "ACGTQ"], **OPTIONS)


def test_degenerate_queries(index, contigs, wrote):
    given = {"r": contigs["one"][:9] + "N" + contigs["one"][10:19] + "R", "plain": "ACGTACGTAC"}
    run = ("--index", "genome.index", "--queries", "Q.fa", "--mismatches", 1, "--max-hits", 0)
    table = wrote("find_seeds", "hits.tsv", *run, Q=given)
    found = bwarp.find_seeds(index, given, mismatches=1, max_hits=0, **OPTIONS)
    assert_frame_equal(found, table)
    assert "r" in set(found["query"])
    run = ("--index", "genome.index", "--queries", "Q.fa", "--mismatches", 1, "--count-only")
    counts = bwarp.find_seeds(index, given, mismatches=1, count_only=True, **OPTIONS)
    assert_frame_equal(counts, wrote("find_seeds", "n.tsv", *run, Q=given))
