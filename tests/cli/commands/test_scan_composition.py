"""bwarp scan: its formats, its options, and its one-line errors."""

import gzip
import re
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


#: Three copies of AACCATCTGA, one with a mismatch and one reversed.
COPIES = ">c1\nGGGAACCATCTGATTTAACCAGCTGA\n>c2\nCCTCAGATGGTTAA\n"
ALIGNMENTS = """\
query	reference	start	end	strand	score	edits	identity	cigar
q	c1	3	13	+	10	0	1.000000	10=
q	c2	2	12	-	10	0	1.000000	10=
q	c1	16	26	+	5	1	0.900000	5=1X4=
"""


def test_alignments(scan, tmp_path):
    (tmp_path / "c.fa").write_text(COPIES)
    (tmp_path / "g.fa").write_text(">none\n\n>q words\nAACCAUCUGA\n")
    files = {"reference": "c.fa", "queries": "g.fa", "similarity": "0.8"}
    done = scan("-o", "out.tsv", "--align", **files)
    assert done.rc == 0, done.stderr
    assert (tmp_path / "out.tsv").read_text() == ALIGNMENTS
    assert "1 query has no bases and therefore no hits" in done.stderr
    n_windows = int(re.search(r"([0-9]+) hits at similarity", done.stderr)[1])
    assert f"aligned {n_windows} windows of both strands" in done.stderr
    assert "wrote 3 alignments to out.tsv" in done.stderr
    *header, first, second, third = ALIGNMENTS.splitlines(keepends=True)
    top = scan("-o", "-", "--align", "--top", "2", **files).stdout
    assert top == "".join([*header, first, second])
    best = scan("-o", "-", "--align", "--best", "1", **files).stdout
    assert best == "".join([*header, first, second])
    scores = ("-A", "2", "-B", "1", "-O", "5", "-E", "1", "-T", "17")
    other = scan("-o", "-", "--align", *scores, **files).stdout
    assert other == "".join([*header, first, second, third]).replace("\t10\t0", "\t20\t0").replace(
        "\t5\t1", "\t17\t1"
    )
    assert scan("-o", "-", "--align", "-T", "-100", **files).stdout.startswith(ALIGNMENTS)
    assert scan("-o", "out.tsv.gz", "--align", "--threads", "3", **files).rc == 0
    assert gzip.decompress((tmp_path / "out.tsv.gz").read_bytes()).decode() == ALIGNMENTS


def test_alignments_as_bed_and_parquet(scan, tmp_path):
    (tmp_path / "c.fa").write_text(COPIES)
    (tmp_path / "g.fa").write_text(">q\nAACCATCTGA\n")
    files = {"reference": "c.fa", "queries": "g.fa", "similarity": "0.8"}
    assert scan("-o", "-", "--align", **files).stdout == ALIGNMENTS
    assert scan("-o", "out.bed", "--align", **files).rc == 0
    assert (tmp_path / "out.bed").read_text() == (
        "c1\t3\t13\tq\t1000\t+\nc2\t2\t12\tq\t1000\t-\nc1\t16\t26\tq\t900\t+\n"
    )
    assert scan("-o", "out.parquet", "--align", **files).rc == 0
    header, *lines = (line.split("\t") for line in ALIGNMENTS.splitlines())
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert [[*row] for row in rows] == [header] * 3
    for row, line in zip(rows, lines, strict=True):
        assert row.pop("identity") == float(line.pop(header.index("identity")))
        assert [str(cell) for cell in row.values()] == line


@pytest.mark.gpu
@pytest.mark.parametrize("algorithm", ["auto", "classes", "tiles", "gather"])
def test_alignments_on_the_gpu(scan, tmp_path, algorithm):
    (tmp_path / "c.fa").write_text(COPIES)
    (tmp_path / "g.fa").write_text(">none\n\n>q words\nAACCAUCUGA\n")
    files = {"reference": "c.fa", "queries": "g.fa", "similarity": "0.8"}
    done = scan("-o", "-", "--align", "--backend", "cuda", "--algorithm", algorithm, **files)
    assert done.stdout == ALIGNMENTS, done.stderr


def test_no_alignments(scan):
    done = scan("-o", "-", "--align", "--min-score", "5")
    assert done.stdout == ALIGNMENTS.splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "out.tsv", "--align", "--regions"), "--align cannot be combined with --regions or "
         "--count-only"),
        (("-o", "out.tsv", "--align", "--count-only"), "--align cannot be combined with --regions "
         "or --count-only"),
        (("-o", "out.tsv", "--top", "3"), "--top requires --align"),
        (("-o", "out.tsv", "-T", "3"), "--min-score requires --align"),
        (("-o", "out.tsv", "-B", "3"), "--mismatch requires --align"),
        (("-o", "out.tsv", "--align", "-A", "0", "-B", "0"), "match and mismatch are both 0: all "
         "alignments would have the same score"),
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
    options = SimpleNamespace(
        max_hits=10**9, output=str(tmp_path / "x.tsv"), regions=False, align=False
    )
    references = SimpleNamespace(names=["chr1"])
    program.refuse_too_many(options, "tsv", 1000, ["q"], references)
    with pytest.raises(UsageError) as error:
        program.refuse_too_many(options, "tsv", 10**6, ["q"], references)
    assert str(error.value) == (
        f"1,000,000 hits would take about 29.0 MB, but {tmp_path} has only 1.0 MB free: raise "
        "--similarity, or use --best or --count-only"
    )
