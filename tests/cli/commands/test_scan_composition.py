"""bwarp scan: its formats, its options, and its one-line errors."""

import gzip
from fractions import Fraction

import pyarrow.parquet as pq
import pytest

REFERENCE = ">chr1 first\nACGTACGTNNACGT\n>chr2\nAAAAAAAA\n>empty\n"
QUERIES = ">q1\nCAGT\n>rna\nuuua\n>none\n\n>q2\nAAAA\n>q3\nGGGGGGGGGGGGGGGGGGG\n"


@pytest.fixture
def scan(tmp_path, run_program):
    """Return a function that runs the program on the small files, with more arguments."""
    (tmp_path / "r.fa").write_text(REFERENCE)
    (tmp_path / "q.fa").write_text(QUERIES)

    def run(*arguments, reference="r.fa", queries="q.fa", similarity="1"):
        files = ("--reference", reference, "--queries", queries, "--similarity", similarity)
        # If a test gives another backend, the last one is used.
        return run_program(
            "scan_composition.py", "--backend", "cpu", *files, *arguments, cwd=tmp_path
        )

    return run


def hits_of(similarity):
    """Return the rows of the table, by counting letters, in their order."""
    references = [("chr1", "ACGTACGTNNACGT"), ("chr2", "AAAAAAAA")]
    rows = []
    for name, query in (("q1", "CAGT"), ("rna", "TTTA"), ("q2", "AAAA"), ("q3", "G" * 19)):
        for reference, text in references:
            for at in range(len(text) - len(query) + 1):
                window = text[at : at + len(query)]
                distance = sum(abs(window.count(x) - query.count(x)) for x in "ACGT")
                if 1 - Fraction(distance, len(query)) >= Fraction(similarity):
                    rows.append((name, reference, at, distance))
    return rows


@pytest.mark.parametrize("algorithm", ["classes", "tiles", "gather"])
@pytest.mark.parametrize("similarity", ["1", "0.5", "1/4"])
def test_tsv(scan, tmp_path, similarity, algorithm):
    done = scan("-o", "out.tsv", "--algorithm", algorithm, similarity=similarity)
    assert done.rc == 0, done.stderr
    lines = (tmp_path / "out.tsv").read_text().splitlines()
    assert lines[0] == "query\treference\tposition\tdistance\tsimilarity"
    expected = hits_of(similarity)
    assert [tuple(line.split("\t")[:4]) for line in lines[1:]] == [
        tuple(map(str, row)) for row in expected
    ]
    for line in lines[1:]:
        distance, shown = line.split("\t")[3:]
        assert shown == f"{1 - int(distance) / 4:.6f}"
    assert f"{len(expected)} hits at similarity {similarity}" in done.stderr
    assert "1 query has no bases and therefore no hits" in done.stderr


def test_standard_output_gzip_bed_and_parquet_say_the_same(scan, tmp_path):
    shown = scan("-o", "-", similarity="0.5").stdout
    rows = [line.split("\t") for line in shown.splitlines()[1:]]
    assert len(rows) > 10
    assert scan("-o", "out.tsv.gz", similarity="0.5").rc == 0
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == shown
    assert scan("-o", "out.bed", similarity="0.5").rc == 0
    bed = [line.split("\t") for line in (tmp_path / "out.bed").read_text().splitlines()]
    assert [[b[3], b[0], b[1]] for b in bed] == [row[:3] for row in rows]
    assert all(int(b[2]) - int(b[1]) == 4 and b[5] == "." for b in bed)
    assert [int(b[4]) for b in bed] == [1000 * (4 - int(row[3])) // 4 for row in rows]
    assert scan("-o", "out.parquet", similarity="0.5").rc == 0
    table = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [[r["query"], r["reference"], str(r["position"])] for r in table] == [
        row[:3] for row in rows
    ]


def test_regions(scan, tmp_path):
    assert scan("-o", "out.tsv", "--regions").rc == 0
    assert (tmp_path / "out.tsv").read_text() == (
        "query\treference\tstart\tend\twindows\tdistance\tsimilarity\n"
        "q1\tchr1\t0\t8\t5\t0\t1.000000\n"
        "q1\tchr1\t10\t14\t1\t0\t1.000000\n"
        "q2\tchr2\t0\t8\t5\t0\t1.000000\n"
    )


def test_best(scan, tmp_path):
    assert scan("-o", "out.tsv", "--best", "2", similarity="0.25").rc == 0
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()[1:]]
    expected = []
    for name in ("q1", "rna", "q2"):
        found = [row for row in hits_of("0.25") if row[0] == name]
        # Positions continue across references, so the reference is part of the order.
        expected += sorted(found, key=lambda row: (row[3], row[1], row[2]))[:2]
    assert [tuple(row[:4]) for row in rows] == [tuple(map(str, row)) for row in expected]


def test_counts(scan, tmp_path):
    assert scan("-o", "out.tsv", "--count-only", similarity="0.5").rc == 0
    expected = "query\tlength\thits\n"
    for name, length in (("q1", 4), ("rna", 4), ("none", 0), ("q2", 4), ("q3", 19)):
        n_hits = sum(row[0] == name for row in hits_of("0.5"))
        expected += f"{name}\t{length}\t{n_hits}\n"
    assert (tmp_path / "out.tsv").read_text() == expected
    assert scan("-o", "out.parquet", "--count-only", similarity="0.5").rc == 0
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["hits"] == [int(line.split("\t")[2]) for line in expected.splitlines()[1:]]


def test_threads_change_nothing(scan):
    one = scan("-o", "-", "--threads", "1", similarity="0.25").stdout
    assert one == scan("-o", "-", "--threads", "3", similarity="0.25").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "out.tsv", "--count-only", "--best", "2"), "--count-only cannot be combined "
         "with --best or --regions"),
        (("-o", "out.tsv", "--regions", "--best", "2"), "--best cannot be combined with "
         "--regions"),
        (("-o", "out.txt"), "out.txt: the output must end in .tsv, .bed, .tsv.gz, .bed.gz or "
         ".parquet"),
        (("-o", "out.parquet.gz"), "out.parquet.gz: the output must end in .tsv, .bed, .tsv.gz, "
         ".bed.gz or .parquet"),
        (("-o", "out.bed", "--count-only"), "--count-only requires .tsv, .tsv.gz or .parquet "
         "output"),
        (("-o", "out.tsv", "--max-hits", "3"), "--max-hits 3 is less than the 11 hits found "
         "(about 340 bytes): raise --similarity, or use --best or --count-only, or raise "
         "--max-hits"),
    ],
)  # fmt: skip
def test_wrong_options(scan, tmp_path, arguments, message):
    done = scan(*arguments)
    assert done.rc == 2
    assert done.stderr.splitlines()[-1] == f"scan_composition.py: error: {message}"
    assert not list(tmp_path.glob("out*"))


@pytest.mark.parametrize(
    ("reference", "queries", "message"),
    [
        ("", QUERIES, "r2.fa: the file contains no sequences"),
        (REFERENCE, "", "q2.fa: the file contains no sequences"),
        (REFERENCE + ">\nAC\n", QUERIES, "r2.fa, record 4 has no name: write one after > or @"),
        (REFERENCE, ">a\nAC\n>\nAC\n", "q2.fa, record 2 has no name: write one after > or @"),
        (REFERENCE, ">a\nACE\n", "q2.fa, line 2: 'E' is not a valid sequence letter"),
        (REFERENCE, ">a\n" + 70000 * "A" + "\n", "q2.fa: query 'a' has 70,000 bases, but the "
         "maximum is 65,534"),
    ],
)  # fmt: skip
def test_wrong_files(scan, tmp_path, reference, queries, message):
    (tmp_path / "r2.fa").write_text(reference)
    (tmp_path / "q2.fa").write_text(queries)
    done = scan("-o", "out.tsv", reference="r2.fa", queries="q2.fa")
    assert done.rc == 1
    assert done.stderr.splitlines()[-1] == f"scan_composition.py: error: {message}"
    assert not (tmp_path / "out.tsv").exists()


def test_more_than_the_disk_holds_is_refused(tmp_path, monkeypatch):
    from types import SimpleNamespace

    from bwarp.cli.commands import scan_composition as program
    from bwarp.errors import UsageError

    usage = SimpleNamespace(free=1_000_000)
    monkeypatch.setattr(program.shutil, "disk_usage", lambda folder: usage)
    options = SimpleNamespace(max_hits=10**9, output=str(tmp_path / "x.tsv"), regions=False)
    references = SimpleNamespace(names=["chr1"])
    program.refuse_too_many(options, "tsv", 1000, ["q"], references)
    with pytest.raises(UsageError) as error:
        program.refuse_too_many(options, "tsv", 10**6, ["q"], references)
    assert str(error.value) == (
        f"1,000,000 hits would take about 29.0 MB, but {tmp_path} has only 1.0 MB free: raise "
        "--similarity, or use --best or --count-only"
    )
