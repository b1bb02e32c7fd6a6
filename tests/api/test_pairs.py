"""bwarp.align_pairs: the rows of the program's table."""

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import bwarp
from bwarp.errors import InputError, UsageError

OPTIONS = {"backend": "cpu", "threads": 1}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mode": "local", "match": 2, "mismatch": -3, "gap_open": 5, "gap_extend": 2},
        {"free_ends": "reference-start,reference-end"},
        {"mode": "global", "matrix": "NUC.4.4"},
        {"mode": "gatk", "parameters": "alignment-to-best-haplotype", "overhang": "ignore"},
    ],
)
def test_the_rows_of_the_table(queries, contigs, wrote, options):
    references = {f"r{i}": contigs["one"][i * 50 : i * 50 + 60] for i in range(len(queries))}
    words = []
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}", value]
    arguments = ("--queries", "Q.fa", "--references", "R.fa", *words)
    table = wrote("align_pairs", "out.tsv.gz", *arguments, Q=queries, R=references)
    assert len(table) == len(queries)
    assert_frame_equal(bwarp.align_pairs(queries, references, **options, **OPTIONS), table)
    assert_frame_equal(bwarp.align_pairs("Q.fa", references, **options, **OPTIONS), table)


def test_columns_of_a_frame_are_sequences(queries):
    letters = list(queries.values())
    given = pd.DataFrame({"query": letters, "reference": letters[::-1]}, index=list(queries))
    found = bwarp.align_pairs(given["query"], given["reference"], mode="local", **OPTIONS)
    assert found["query"].tolist() == found["reference"].tolist() == list(queries)
    ends = bwarp.align_pairs(letters, letters, free_ends=["query-end"], **OPTIONS)
    assert ends.cigar.tolist() == ["30="] * len(letters)


def test_paf_of_the_program(queries, wrote):
    arguments = ("--queries", "Q.fa", "--references", "Q.fa")
    paf = wrote("align_pairs", "out.paf", *arguments, Q=queries)
    assert paf["query"].tolist() == paf.target.tolist() == list(queries)
    assert set(paf.AS) == {30}
    assert set(paf.NM) == {0}
    assert set(paf.cg) == {"30="}
    assert paf.query_end.dtype == "int64"


def test_nothing_and_refusals():
    assert bwarp.align_pairs([], [], **OPTIONS).shape == (0, 6)
    with pytest.raises(InputError, match="^queries has 2 records but references has 1"):
        bwarp.align_pairs(["ACGT", "A"], ["ACGT"], **OPTIONS)
    with pytest.raises(InputError, match=r"^queries, record 2 \(1\) has no sequence"):
        bwarp.align_pairs(["ACGT", ""], ["ACGT", "A"], **OPTIONS)
    with pytest.raises(
        InputError, match=r"^references\[0\]: 'E' at position 0 is not a valid sequence letter"
    ):
        bwarp.align_pairs(["ACGT"], ["EE"], **OPTIONS)
    for options, message in (
        ({"mode": "best"}, "mode 'best' is not one of global, local, semiglobal, fitting, gatk"),
        ({"mode": "gatk", "overhang": "x"}, "overhang 'x' is not one of softclip, indel"),
        ({"mode": "gatk", "parameters": "x"}, "parameters 'x' is not one of "),
        ({"mismatch": 4}, "mismatch 4 is not a whole number from -10000 to 0"),
        ({"algorithm": "x"}, "algorithm 'x' is not one of band, run-lengths"),
        ({"matrix": "BLOSUM62", "match": 1}, "--matrix cannot be combined with --match"),
    ):
        with pytest.raises(UsageError) as error:
            bwarp.align_pairs(["ACGT"], ["ACGT"], **options, **OPTIONS)
        assert str(error.value).startswith(message)
