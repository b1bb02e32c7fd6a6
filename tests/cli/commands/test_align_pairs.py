"""bwarp pairs as users run it: every format, every mode, every error."""

import gzip

import numpy as np
import pysam
import pytest

QUERIES = ">q0\nACGTACGTTT\n>q1 more words\nggattaca\n>q2\nCCCCNCCC\n"
REFERENCES = ">r0\nTTACGTACGTTTGG\n>r1\nGGATTTACA\n>r2\nAACCCCGCCCAA\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.fa").write_text(QUERIES)
    with gzip.open(tmp_path / "r.fa.gz", "wt") as file:
        file.write(REFERENCES)
    return tmp_path


def align(run_program, folder, output, *options):
    return run_program(
        "align_pairs.py",
        "--backend", "cpu", "--threads", 1, "--queries", "q.fa", "--references", "r.fa.gz",
        "-o", output, *options, cwd=folder,
    )  # fmt: skip


def rows(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_tsv(run_program, files):
    done = align(run_program, files, "out.tsv", "--gap-open", 2)
    assert (done.rc, done.stderr) == (0, "aligned 3 pairs on cpu\n")
    assert rows(files / "out.tsv") == [
        ["pair", "reference", "query", "score", "position", "cigar"],
        ["0", "r0", "q0", "10", "2", "10="],
        ["1", "r1", "q1", "5", "0", "3=1D5="],
        ["2", "r2", "q2", "3", "2", "4=1X3="],
    ]


def test_modes_and_free_ends(run_program, files):
    assert align(run_program, files, "g.tsv", "--mode", "global").rc == 0
    assert rows(files / "g.tsv")[1][3:] == ["-6", "0", "2D10=2D"]
    assert align(run_program, files, "l.tsv", "--mode", "local").rc == 0
    assert rows(files / "l.tsv")[3][3:] == ["4", "2", "4=4S"]
    assert align(run_program, files, "f.tsv", "--free-ends", "reference-end").rc == 0
    assert rows(files / "f.tsv")[1][3:] == ["2", "0", "2D10="]


def test_sam_is_what_pysam_reads(run_program, files):
    assert align(run_program, files, "out.sam", "--mode", "fitting", "--gap-open", 2).rc == 0
    with pysam.AlignmentFile(files / "out.sam") as sam:
        assert list(zip(sam.references, sam.lengths, strict=True)) == [
            ("r0", 14), ("r1", 9), ("r2", 12),
        ]  # fmt: skip
        assert sam.header.to_dict()["PG"][0]["CL"] == (
            "bwarp pairs --references REFERENCES.fa --queries QUERIES.fa -o OUT.sam --mode fitting "
            "--match 1 --mismatch -4 --gap-open 2 --gap-extend 1"
        )
        records = list(sam)
    assert [r.cigarstring for r in records] == ["10=", "3=1D5=", "4=1X3="]
    assert [r.reference_start for r in records] == [2, 0, 2]
    assert [r.get_tag("NM") for r in records] == [0, 1, 1]
    assert [r.get_tag("MD") for r in records] == ["10", "3^T5", "4G3"]
    assert [r.query_sequence for r in records] == ["ACGTACGTTT", "GGATTACA", "CCCCNCCC"]
    assert records[1].get_reference_sequence() == "GGATTTACA"


def test_paf(run_program, files):
    assert align(run_program, files, "out.paf.gz", "--mode", "local").rc == 0
    with gzip.open(files / "out.paf.gz", "rt") as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    assert lines[0] == [
        "q0", "10", "0", "10", "+", "r0", "14", "2", "12", "10", "10", "255",
        "AS:i:10", "NM:i:0", "cg:Z:10=",
    ]  # fmt: skip


def test_gatk_mode(run_program, files):
    done = align(run_program, files, "out.tsv", "--mode", "gatk", "--overhang", "softclip")
    assert done.rc == 0
    assert rows(files / "out.tsv")[1:] == [
        ["0", "r0", "q0", "2000", "2", "10M"],
        ["1", "r1", "q1", "1340", "0", "3M1D5M"],
        ["2", "r2", "q2", "1250", "2", "8M"],
    ]


def test_gatk_costs_are_gatks(run_program, files):
    options = ("--mode", "gatk", "--match", 200, "--mismatch", -150, "--gap-open", 260,
               "--gap-extend", 11)  # fmt: skip
    assert align(run_program, files, "a.tsv", *options).rc == 0
    assert align(run_program, files, "b.tsv", "--mode", "gatk").rc == 0
    assert (files / "a.tsv").read_text() == (files / "b.tsv").read_text()


def test_a_table_of_pairs(run_program, files):
    (files / "t.tsv").write_text("# query, reference\nACGT\tTTACGTT\n\nAC\tAC\n")
    (files / "n.tsv").write_text("x\tMKWV\ty\tAAMKUWVAA\r\n")
    command = ("align_pairs.py", "--backend", "cpu", "--pairs")
    done = run_program(*command, "t.tsv", "-o", "-", cwd=files)
    assert done.stdout.splitlines()[1:] == ["0\t0\t0\t4\t2\t4=", "1\t1\t1\t2\t0\t2="]
    done = run_program(
        *command, "n.tsv", "-o", "-", "--matrix", "blosum62", "--gap-open", 1, cwd=files
    )
    assert done.stdout.splitlines()[1:] == ["0\ty\tx\t23\t2\t2=1D2="]


def test_fastq_and_large_files_stream(run_program, tmp_path):
    """The batches of the two files end at different records."""
    rng = np.random.default_rng(61)
    reads = ["".join("ACGT"[c] for c in row) for row in rng.integers(0, 4, (40_000, 100))]
    with open(tmp_path / "q.fq", "w") as queries, open(tmp_path / "r.fa", "w") as references:
        for i, read in enumerate(reads):
            queries.write(f"@q{i}\n{read}\n+\n{'I' * 100}\n")
            references.write(f">r{i}\nGG{read}{'T' * 160}\n")
    done = run_program(
        "align_pairs.py", "--backend", "cpu", "--threads", 2, "--queries", "q.fq",
        "--references", "r.fa", "-o", "o.tsv", "--mode", "fitting", cwd=tmp_path,
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    lines = rows(tmp_path / "o.tsv")[1:]
    assert [line[0] for line in lines] == [str(i) for i in range(40_000)]
    assert all(line[3:] == ["100", "2", "100="] for line in lines)


@pytest.mark.parametrize(
    ("queries", "options", "rc", "message"),
    [
        (
            ">a\nACGT\n>b\n\n>c\nA\n", (), 1,
            "q.fa, record 2 (b) has no sequence: remove it and its partner",
        ),
        (
            ">a\nACGT\n>b\nA\n", (), 1,
            "q.fa has 2 records but r.fa.gz has 3: query i is aligned to reference i, so their "
            "numbers must be equal",
        ),
        (QUERIES, ("--gap-open", "-6"), 2,
         "argument -O/--gap-open: '-6' is not a whole number from 0 to 10000 (see align_pairs.py "
         "--help)"),
        (QUERIES, ("--mismatch", "4"), 2,
         "argument --mismatch: '4' is not a whole number from -10000 to 0 (see align_pairs.py "
         "--help)"),
        (QUERIES, ("--matrix", "BLOSUM62", "--match", 2), 2,
         "--matrix cannot be combined with --match or --mismatch"),
        (QUERIES, ("--overhang", "indel"), 2,
         "--overhang and --parameters require --mode gatk"),
        (QUERIES, ("--mode", "local", "--free-ends", "query-end"), 2,
         "--free-ends requires --mode semiglobal, not local"),
        (QUERIES, ("--free-ends", "query-end,both"), 2,
         "free end 'both' is not one of query-start, query-end, reference-start, reference-end"),
        (QUERIES, ("--mode", "gatk", "--matrix", "BLOSUM62"), 2,
         "--mode gatk cannot be combined with --matrix or --free-ends"),
        (QUERIES, ("--mode", "gatk", "--algorithm", "run-lengths"), 2,
         "algorithm run-lengths requires a GPU, but the backend is cpu: use --algorithm band"),
        (QUERIES, ("--algorithm", "run-lengths"), 2,
         "--algorithm run-lengths requires --mode gatk"),
        (QUERIES, ("--pairs", "t.tsv"), 2,
         "--pairs cannot be combined with --queries or --references"),
        (QUERIES, ("--backend", "cuda"), 2, None),
    ],
)  # fmt: skip
def test_refusals_are_one_line(run_program, files, queries, options, rc, message):
    if message is None:
        from bwarp.runtime.backend import gpu_problem

        if gpu_problem() is None:
            pytest.skip("a GPU is here, so that nothing is refused")
        message = f"cannot use backend cuda: {gpu_problem()}; alternatively, use --backend cpu"
    (files / "q.fa").write_text(queries)
    done = align(run_program, files, "out.tsv", *options)
    assert (done.rc, done.stderr) == (rc, f"align_pairs.py: error: {message}\n")
    assert not (files / "out.tsv").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("ACGT\tAC\tGT", "t.tsv, line 2: found 3 columns: write query and reference, or query "
         "name, query, reference name and reference, separated by tabs"),
        ("ACGT\t", "t.tsv, line 2: the reference is empty: remove the line"),
        ("ACJT\tACG", "t.tsv, line 2: 'J' in the query is not in the alphabet of the scores"),
    ],
)  # fmt: skip
def test_bad_tables_are_refused(run_program, tmp_path, line, message):
    (tmp_path / "t.tsv").write_text(f"ACGT\tACGT\n{line}\n")
    done = run_program(
        "align_pairs.py", "--backend", "cpu", "--pairs", "t.tsv", "-o", "o.tsv", cwd=tmp_path
    )
    assert (done.rc, done.stderr) == (1, f"align_pairs.py: error: {message}\n")


def test_other_refusals(run_program, files):
    done = align(run_program, files, "out.bam")
    assert done.stderr.endswith(
        "error: out.bam: the output must end in .tsv, .paf or .sam, or one with .gz\n"
    )
    done = align(run_program, files, "out.sam", "--matrix", "NUC.4.4")
    assert done.stderr.endswith(
        "error: SAM output requires nucleotides: with --matrix, write .tsv or .paf\n"
    )
    (files / "q.fa").write_text(">a\nACZT\n>b\nA\n>c\nA\n")
    done = align(run_program, files, "out.tsv")
    assert (done.rc, done.stderr) == (
        1, "align_pairs.py: error: q.fa, line 2: 'Z' is not a valid sequence letter\n"
    )  # fmt: skip
    done = align(run_program, files, "out.tsv", "--matrix", "TRANS")
    assert done.rc == 1, "a matrix over ACGT has no Z either"


def test_a_matrix_without_a_letter_and_scores_beyond_the_bound_are_refused(run_program, files):
    done = align(run_program, files, "out.tsv", "--matrix", "HOXD70")
    assert (done.rc, done.stderr) == (
        1, "align_pairs.py: error: q.fa, line 6: 'N' is not a valid sequence letter\n"
    )  # fmt: skip
    (files / "t.tsv").write_text(f"{'A' * 60_000}\t{'C' * 60_000}\n")
    done = run_program(
        "align_pairs.py", "--backend", "cpu", "--pairs", "t.tsv", "-o", "o.tsv", "--match", 10_000,
        cwd=files,
    )  # fmt: skip
    assert (done.rc, done.stderr) == (
        1,
        "align_pairs.py: error: 60000 against 60,000 residues can score 600010000 or -120023, "
        "beyond the limit of 536870912: use smaller scores and gap costs, or shorter sequences\n",
    )


@pytest.mark.parametrize(
    ("queries", "references", "message"),
    [
        (
            b">a\nAC\n>b\x00c d\nAC\n", b">r\nAC\n>s\nAC\n",
            r"q.fa, record 2: SAM does not allow the read name 'b\x00c' (printable ASCII, at "
            r"most 254 characters, no @ at the start): rename it, or write .tsv or .paf",
        ),
        (
            b">@a\nAC\n", b">r\nAC\n",
            "q.fa, record 1: SAM does not allow the read name '@a' (printable ASCII, at most "
            "254 characters, no @ at the start): rename it, or write .tsv or .paf",
        ),
        (
            b">%b\nAC\n" % (b"a" * 255), b">r\nAC\n",
            f"q.fa, record 1: SAM does not allow the read name '{'a' * 255}' (printable ASCII, "
            "at most 254 characters, no @ at the start): rename it, or write .tsv or .paf",
        ),
        (
            b">a\nAC\n>b\nAC\n", b">r\nAC\n>s,t u\nAC\n",
            "r.fa, record 2: SAM does not allow the contig name 's,t' (printable ASCII, no "
            "comma, quote or bracket, no * or = at the start): rename it, or write .tsv or .paf",
        ),
    ],
)  # fmt: skip
def test_names_that_sam_does_not_allow(run_program, tmp_path, queries, references, message):
    (tmp_path / "q.fa").write_bytes(queries)
    (tmp_path / "r.fa").write_bytes(references)
    command = ("align_pairs.py", "--backend", "cpu", "--queries", "q.fa", "--references", "r.fa")
    done = run_program(*command, "-o", "o.sam", cwd=tmp_path)
    assert (done.rc, done.stderr) == (1, f"align_pairs.py: error: {message}\n")
    assert not (tmp_path / "o.sam").exists()
    assert run_program(*command, "-o", "o.tsv", cwd=tmp_path).rc == 0


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Return a folder with files of more than one block, and their pairs as a table."""
    folder = tmp_path_factory.mktemp("many")
    rng = np.random.default_rng(62)
    letters = np.frombuffer(b"ACGT", np.uint8)
    with (
        open(folder / "q.fq", "wb") as queries,
        open(folder / "r.fa", "wb") as references,
        open(folder / "t.tsv", "wb") as table,
    ):
        for i in range(60_000):
            reference = letters[rng.integers(0, 4, 120 + i % 100)]
            query = reference[9 : 9 + 100].copy()
            query[rng.integers(0, 100, 2)] = letters[rng.integers(0, 4, 2)]
            query, reference = query.tobytes(), reference.tobytes()
            if i % 5 == 0:
                query = query[:40] + query[43:]
            queries.write(b"@q%d/1 x\n%s\n+\n%s\n" % (i, query, b"I" * len(query)))
            references.write(b">r%d\n%s\n%s\n" % (i, reference[:80], reference[80:]))
            table.write(b"q%d/1\t%s\tr%d\t%s\n" % (i, query, i, reference))
    return folder


def written(run_program, folder, output, *options):
    done = run_program("align_pairs.py", *options, "-o", output, cwd=folder)
    assert done.rc == 0, done.stderr
    data = (folder / output).read_bytes()
    (folder / output).unlink()
    return data


FILES = ("--queries", "q.fq", "--references", "r.fa")


def test_threads_and_formats_of_input_change_nothing(run_program, many):
    cpu = ("--backend", "cpu", "--mode", "fitting", "--threads")
    expected = written(run_program, many, "o.tsv", *FILES, *cpu, 1)
    assert expected.count(b"\n") == 60_001
    assert written(run_program, many, "o.tsv", *FILES, *cpu, 3) == expected
    assert written(run_program, many, "o.tsv", "--pairs", "t.tsv", *cpu, 1) == expected
    assert written(run_program, many, "o.tsv", "--pairs", "t.tsv", *cpu, 3) == expected
    assert gzip.decompress(written(run_program, many, "o.tsv.gz", *FILES, *cpu, 2)) == expected


@pytest.mark.gpu
@pytest.mark.parametrize("output", ["o.tsv", "o.paf", "o.sam"])
def test_a_gpu_writes_the_same(run_program, many, output):
    cpu, cuda = (
        written(run_program, many, output, *FILES, "--mode", "local", "--backend", backend)
        for backend in ("cpu", "cuda")
    )
    assert cpu == cuda
