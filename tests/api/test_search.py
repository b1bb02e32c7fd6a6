"""bwarp.search: the rows of the program's table."""

import numpy as np
import pytest
from pandas.testing import assert_frame_equal

import bwarp
from bwarp.cli.commands import index_database
from bwarp.errors import InputError, UsageError

OPTIONS = {"backend": "cpu", "threads": 1}


@pytest.fixture(scope="module")
def proteins():
    rng = np.random.default_rng(4)
    letters = list("ACDEFGHIKLMNPQRSTVWY")
    return {f"p{i}": "".join(rng.choice(letters, 30 + 5 * (i % 7))) for i in range(40)}


def test_the_rows_of_the_table(proteins, wrote):
    asked = {name: proteins[name][3:25] for name in ("p3", "p17", "p30")}
    arguments = ("--queries", "Q.fa", "--database", "D.fa", "--top", 5)
    table = wrote("search_database", "hits.tsv", *arguments, Q=asked, D=proteins)
    assert table.target[::5].tolist() == list(asked)
    assert_frame_equal(bwarp.search(asked, proteins, top=5, **OPTIONS), table)
    assert_frame_equal(bwarp.search("Q.fa", "D.fa", top=5, **OPTIONS), table)

    table = wrote("search_database", "e.tsv", *arguments, "--evalue", Q=asked, D=proteins)
    found = bwarp.search(asked, proteins, top=5, evalue=True, **OPTIONS)
    # The program writes three digits.
    assert_frame_equal(found, table, rtol=5e-3)


def test_a_prepared_database_and_blast_tables(proteins, wrote):
    asked = {"q": proteins["p5"]}
    arguments = ("--queries", "Q.fa", "--database", "D.fa", "--alignments", "hits.m8")
    table = wrote("search_database", "hits.tsv", *arguments, Q=asked, D=proteins)
    index_database.main(index_database.parse_options().parse_args(["D.fa", "-o", "D.search"]))
    assert_frame_equal(bwarp.search(asked, "D.search", **OPTIONS), table)
    blast = bwarp.read_table("hits.m8")
    assert blast.sseqid.tolist() == table.target.tolist()
    assert blast.loc[0, ["pident", "length", "mismatch"]].tolist() == [100.0, 55, 0]
    assert blast.qend.dtype == "int64"


def test_nucleotides(contigs):
    found = bwarp.search(
        [contigs["one"][50:90]], contigs, match=2, mismatch=-3, gap_open=5, gap_extend=2,
        min_score=60, **OPTIONS,
    )  # fmt: skip
    assert found.values.tolist() == [["0", "one", 80, 40, 90]]


def test_nothing_and_refusals(proteins):
    assert bwarp.search([], proteins, **OPTIONS).shape == (0, 5)
    assert bwarp.search([], proteins, evalue=True, **OPTIONS).shape == (0, 7)
    for queries, database, options, message in (
        (["MKV"], [], {}, "database: no sequences: give at least one"),
        (["MKV", ""], proteins, {}, "queries, record 2 (1) has no sequence"),
        (["MK1"], proteins, {}, "queries[0]: '1' at position 2 is not a valid sequence letter"),
        ("MKV", proteins, {}, "queries 'MKV' is not an existing file"),
        (["MKV"], proteins, {"top": 0}, "top 0 is not a whole number from 1 to"),
        (["MKV"], proteins, {"mismatch": -1}, "--mismatch requires --match"),
        (["MKV"], ["MKV"], {"algorithm": "x"}, "algorithm 'x' is not one of profile, prefix-scan"),
        (["A"], ["A"], {"match": 1, "evalue": True}, "E-values require a protein matrix"),
    ):
        with pytest.raises((InputError, UsageError)) as error:
            bwarp.search(queries, database, **options, **OPTIONS)
        assert str(error.value).startswith(message)
