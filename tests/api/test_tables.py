"""bwarp.read_table: its errors; tests of the programs check that it reads their tables."""

import gzip
import math
import sys

import pytest

import bwarp
from bwarp.errors import InputError, UsageError

SEEDS = "query\tkmer_start\tstrand\tcontig\tposition\tmismatches\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "",
            "not a table of bwarp (unknown column ''): read other tables with pandas.read_csv",
        ),
        (
            "a.tsv",
            "query,strand\n",
            "not a table of bwarp (unknown column 'query,strand'): read other tables with "
            "pandas.read_csv",
        ),
        (
            "a.tsv",
            SEEDS + "q\t0\t+\tone\t12",
            "the file is truncated: write it again",
        ),
        # A cell that continues on the next line does not change the number of tabs.
        (
            "a.tsv",
            SEEDS + "q\t0\t+\tone\t12\nq\t0\t+\tone\t12\t1\t7\n",
            "line 2: found 5 columns instead of 6: write the table again",
        ),
        (
            "a.tsv",
            SEEDS + "q\t0\t+\tone\t12\t0\n\nq\t0\t+\tone\t12\t1\n",
            "line 3: found 1 column instead of 6: write the table again",
        ),
        (
            "a.tsv",
            SEEDS + "q\t0\t+\tone\t12\t0\nq\t0\t+\tone\tx\t1\n",
            "line 3: 'x' in column position is not a number: write the table again",
        ),
        (
            "a.bed",
            "one\t1\t2\tq\t\t+\n",
            "line 1: '' in column score is not a number: write the table again",
        ),
        (
            "a.tsv",
            SEEDS + f"q\t0\t+\tone\t{10**30}\t0\n",
            f"line 2: '{10**30}' in column position is not a number: write the table again",
        ),
        (
            "a.mums",
            "> q\n  1  2\n",
            "line 2: neither a header (> query) nor a match (position in the reference, "
            "position in the query, length) in MUMmer's format",
        ),
        (
            "a.mums",
            "  1  2  3\n",
            "line 1: neither a header (> query) nor a match (position in the reference, "
            "position in the query, length) in MUMmer's format",
        ),
        (
            "a.paf",
            "q\t9\t0\t9\t+\tone\t99\t1\t10\t9\t9\t60\tNM:i:0\nq\t9\t0\t9\t+\tone\t99\t1\t10\t9\t9\t60\tNM\n",
            "line 2: 'NM' is not a tag such as NM:i:0: write the table again",
        ),
        ("a.parquet", "PAR1", "the file is damaged: write it again"),
        (
            "a.stats",
            "# Summary\nSN\tsequences:\t9\nSN\treads mapped:\tnine\n",
            "line 3: not a line of samtools stats: write the file again",
        ),
        (
            "a.flagstat",
            "9 + 0 in total (QC-passed reads + QC-failed reads)\n9 primary\n",
            "line 2: found 1 column instead of 3: write the table again",
        ),
    ],
)
@pytest.mark.parametrize("compressed", [False, True])
def test_not_a_table(tmp_path, name, text, message, compressed):
    path = tmp_path / name
    if compressed and path.suffix != ".parquet":
        path = tmp_path / f"{name}.gz"
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    with pytest.raises(InputError) as error:
        bwarp.read_table(path)
    start = f"{path}, line" if message.startswith("line") else f"{path}: "
    assert str(error.value) == start + message.removeprefix("line")


def test_a_parquet_file_without_its_extra(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(bwarp.UsageError, match=r"parquet: Parquet requires pyarrow: pip"):
        bwarp.read_table(tmp_path / "a.parquet")


def test_a_parquet_file_of_another_program(tmp_path):
    import pandas as pd

    pd.DataFrame({"query": ["a"], "colour": ["red"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="unknown column 'colour'"):
        bwarp.read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.sam", "a.bam", "a.cram", "a.sam.gz"])
def test_alignments(tmp_path, name):
    with pytest.raises(UsageError) as error:
        bwarp.read_table(tmp_path / name)
    assert str(error.value) == (
        f"{tmp_path / name}: the file contains alignments: read it with pysam.AlignmentFile"
    )


def test_no_file(tmp_path):
    for name in ("a.tsv", "a.parquet"):
        with pytest.raises(InputError, match="no such file"):
            bwarp.read_table(tmp_path / name)


def test_tables_without_rows(tmp_path):
    for name, text, n_columns in (
        ("a.tsv", SEEDS, 6), ("a.bed", "", 6), ("a.paf", "", 12), ("a.m8", "", 12),
        ("b.txt", SEEDS, 6),
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        table = bwarp.read_table(tmp_path / name)
        assert table.shape == (0, n_columns)
        assert {"int64", "str"} <= set(table.dtypes.map(str))


def test_pairs_of_primers_have_names(tmp_path):
    (tmp_path / "a.pairs.tsv").write_text(
        "pair\tforward\treverse\tforward_sites\treverse_sites\tproducts\n007\tACGT\tNA\t1\t2\t3\n"
    )
    table = bwarp.read_table(tmp_path / "a.pairs.tsv")
    assert table.iloc[0].tolist() == ["007", "ACGT", "NA", 1, 2, 3]


def test_guides_without_a_header(tmp_path):
    (tmp_path / "a.txt").write_text("chr20:5-25:-\tACGTACGTACGTACGTACGT\n")
    table = bwarp.read_table(tmp_path / "a.txt")
    assert dict(table.iloc[0]) == {"guide": "chr20:5-25:-", "sequence": "ACGTACGTACGTACGTACGT"}


def test_tags_that_some_lines_lack(tmp_path):
    columns = "q\t9\t0\t9\t+\tone\t99\t1\t10\t9\t9\t60"
    (tmp_path / "a.paf").write_text(
        f"{columns}\tNM:i:0\tBC:Z:AC:GT\tde:f:0.5\n{columns}\tNM:i:2\tXX:i:7\n"
    )
    table = bwarp.read_table(tmp_path / "a.paf")
    assert table["NM"].tolist() == [0, 2]
    assert table["NM"].dtype == "int64"
    assert table["BC"].tolist() == ["AC:GT", ""]
    assert (table["de"][0], table["XX"][1]) == (0.5, 7)
    assert math.isnan(table["de"][1])
    assert math.isnan(table["XX"][0])


def test_names_that_are_not_utf8(tmp_path):
    (tmp_path / "a.tsv").write_bytes(SEEDS.encode() + b'\xff"x\t0\t+\tone\t12\t0\n')
    assert bwarp.read_table(tmp_path / "a.tsv")["query"].tolist() == ['\ufffd"x']


FILES_OF_OTHERS = {
    "a.flagstat": (
        "9 + 1 in total (QC-passed reads + QC-failed reads)\n"
        "8 + 0 mapped (88.89% : N/A)\n"
        "2 + 0 with mate mapped to a different chr (mapQ>=5)\n",
        {
            "name": [
                "in total (QC-passed reads + QC-failed reads)",
                "mapped",
                "with mate mapped to a different chr (mapQ>=5)",
            ],
            "passed": [9, 8, 2],
            "failed": [1, 0, 0],
        },
    ),
    "a.idxstats": (
        "007\t99\t5\t0\n*\t0\t0\t2\n",
        {"contig": ["007", "*"], "length": [99, 0], "mapped": [5, 0], "unmapped": [0, 2]},
    ),
    "a.stats": (
        "# This file was produced by samtools stats\n"
        "SN\treads mapped:\t9\nSN\terror rate:\t1.5e-03\t# mismatches / bases mapped (cigar)\n"
        "FTC\t7\t8\nCOV\t[1-1]\t1\t20\n",
        {
            "section": ["SN", "SN", "FTC", "FTC", "COV", "COV"],
            "name": ["reads mapped", "error rate", "", "", "[1-1]", "[1-1]"],
            "column": [0, 0, 0, 1, 0, 1],
            "value": [9, 0.0015, 7, 8, 1, 20],
        },
    ),
    "a.mosdepth.global.dist.txt": (
        "one\t1\t0.25\ntotal\t0\t1.00\n",
        {"contig": ["one", "total"], "depth": [1, 0], "share": [0.25, 1]},
    ),
    "a.mosdepth.summary.txt": (
        "chrom\tlength\tbases\tmean\tmin\tmax\none\t9\t18\t2.00\t0\t3\n",
        {"chrom": ["one"], "length": [9], "bases": [18], "mean": [2], "min": [0], "max": [3]},
    ),
    "a.regions.bed": (
        "one\t0\t9\tNA\t2.00\none\t3\t9\t1.50\n",
        {
            "contig": ["one", "one"],
            "start": [0, 3],
            "end": [9, 9],
            "name": ["NA", ""],
            "mean": [2, 1.5],
        },
    ),
    "a.txt": (
        "## METRICS CLASS\tpicard.sam.DuplicationMetrics\n"
        "LIBRARY\tREAD_PAIR_DUPLICATES\tPERCENT_DUPLICATION\tESTIMATED_LIBRARY_SIZE\n"
        "L1\t3\t0.25\t\n\n## HISTOGRAM\tjava.lang.Double\nBIN\tCoverageMult\n1.0\t1\n\n",
        {
            "LIBRARY": ["L1"],
            "READ_PAIR_DUPLICATES": [3],
            "PERCENT_DUPLICATION": [0.25],
            "ESTIMATED_LIBRARY_SIZE": [math.nan],
        },
    ),
}


@pytest.mark.parametrize("name", FILES_OF_OTHERS)
def test_files_in_the_formats_of_other_programs(tmp_path, name):
    text, columns = FILES_OF_OTHERS[name]
    (tmp_path / name).write_text(text)
    table = bwarp.read_table(tmp_path / name)
    assert {name: pytest.approx(table[name].tolist(), nan_ok=True) if table[name].dtype == "float64"
            else table[name].tolist() for name in table} == columns  # fmt: skip
