"""bwarp.find_mems: the rows of the program's tables."""

import pytest
from pandas.testing import assert_frame_equal

import bwarp
from bwarp.errors import InputError, UsageError

OPTIONS = {"backend": "cpu", "threads": 1}


@pytest.mark.parametrize("kind", ["maxmatch", "mumreference", "mum"])
def test_the_rows_of_the_tables(index, queries, wrote, kind):
    arguments = ("--index", "genome.index", "--queries", "Q.fa", "-l", 12, "--kind", kind)
    arguments += ("--strands", "both")
    table = wrote("find_mems", "matches.tsv", *arguments, Q=queries)
    assert set(table.strand) == {"+", "-"}
    chosen = {"min_length": 12, "kind": kind, "strands": "both", **OPTIONS}
    for given in (queries, "Q.fa"):
        assert_frame_equal(bwarp.find_mems(index, given, **chosen), table)
    assert_frame_equal(wrote("find_mems", "matches.parquet", *arguments, Q=queries), table)

    paf = wrote("find_mems", "matches.paf.gz", *arguments, Q=queries)
    assert paf["query"].tolist() == table["query"].tolist()
    assert paf.target_start.tolist() == table.position.tolist()
    assert (paf.target_end - paf.target_start).tolist() == table.length.tolist()
    assert paf.cg.tolist() == [f"{length}=" for length in table.length]

    mums = wrote("find_mems", "matches.mums", *arguments, Q=queries)
    assert mums[["query", "strand", "contig", "length"]].equals(
        table[["query", "strand", "contig", "length"]]
    )
    assert (mums.reference_position - 1).tolist() == table.position.tolist()
    forward = table.strand == "+"
    assert (mums.query_position - 1)[forward].equals(table.query_start[forward])


@pytest.mark.parametrize("kind", ["maxmatch", "mumreference", "mum"])
def test_an_index_in_chunks_has_the_same_matches(index, chunks, queries, kind):
    chosen = {"min_length": 12, "kind": kind, "strands": "both", **OPTIONS}
    expected = bwarp.find_mems(index, queries, **chosen)
    assert len(expected)
    for given in (chunks, bwarp.Index.open(chunks)):
        assert_frame_equal(bwarp.find_mems(given, queries, **chosen), expected)


@pytest.mark.gpu
def test_a_gpu_searches_an_index_in_chunks(index, chunks, queries, tmp_path):
    chosen = {"min_length": 12, "kind": "maxmatch", "strands": "both"}
    expected = bwarp.find_mems(index, queries, backend="cpu", **chosen)
    (tmp_path / "q.fa").write_text("".join(f">{name}\n{q}\n" for name, q in queries.items()))
    for given in (queries, tmp_path / "q.fa"):
        found = bwarp.find_mems(chunks, given, backend="cuda", **chosen)
        assert_frame_equal(found, expected)


def test_matches_as_mummer_prints_them(wrote, tmp_path, contigs):
    query = {"q": contigs["two"][100:200]}
    arguments = ("--reference", "R.fa", "--queries", "Q.fa", "--strands", "both")
    one = {"two": contigs["two"]}
    for options, n in (((), 1), (("-L",), 1), (("-F", "-c"), 1)):
        found = wrote("find_mems", "out.txt", *arguments, *options, R=one, Q=query)
        assert len(found) == n
        contig = "two" if "-F" in options else ""
        assert found.loc[0].tolist() == ["q", "+", contig, 101, 1, 100]
    (tmp_path / "none.mums").write_text("")
    assert bwarp.read_table(tmp_path / "none.mums").shape == (0, 6)


def test_nothing_and_refusals(index):
    assert bwarp.find_mems(index, [], **OPTIONS).shape == (0, 6)
    assert bwarp.find_mems(index, ["ACGT" * 10], **OPTIONS).shape == (0, 6)
    with pytest.raises(UsageError, match="^kind 'mems' is not one of maxmatch, mumreference, mum$"):
        bwarp.find_mems(index, ["ACGT"], kind="mems")
    with pytest.raises(UsageError, match="^strands '-' is not one of forward, reverse, both$"):
        bwarp.find_mems(index, ["ACGT"], strands="-")
    with pytest.raises(
        InputError, match=r"^queries\['a'\]: '!' at position 0 is not a valid sequence letter"
    ):
        bwarp.find_mems(index, {"a": "!"}, **OPTIONS)


def test_a_query_without_a_name(index, tmp_path):
    (tmp_path / "q.fa").write_text(">a\nACGT\n>\nACGT\n")
    with pytest.raises(InputError, match=r"q\.fa, record 2 has no name"):
        bwarp.find_mems(index, tmp_path / "q.fa", **OPTIONS)
