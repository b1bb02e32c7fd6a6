"""bwarp search as users run it."""

import gzip

import numpy as np
import pytest

AMINO = "ARNDCQEGHILKMFPSTWYV"


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(71)

    def protein(n):
        return "".join(AMINO[c] for c in rng.integers(0, 20, n))

    query = protein(120)
    targets = {
        "far": protein(300),
        "same": query,
        "part": protein(30) + query[20:90] + protein(10),
        "gap": query[:50] + protein(2) + query[50:],
        "odd": "MUOBZJX*" + query[:40],
        "twin": query,
    }
    (tmp_path / "q.fa").write_text(f">one\n{query}\n>two\n{query[:60].lower()}\n")
    (tmp_path / "d.fa").write_text("".join(f">{n} x\n{s}\n" for n, s in targets.items()))
    return tmp_path


def search(run_program, folder, *options):
    return run_program(
        "search_database.py", "--backend", "cpu", "--threads", 2, *options, cwd=folder
    )


def rows(path):
    return [line.split("\t") for line in path.read_text().splitlines()]


def test_best_hits_come_first_and_twins_in_the_order_of_the_file(run_program, files):
    done = search(run_program, files, "--queries", "q.fa", "--database", "d.fa", "-o", "o.tsv",
                  "--top", 4)  # fmt: skip
    assert done.rc == 0, done.stderr
    lines = rows(files / "o.tsv")
    assert lines[0] == ["query", "target", "score", "query_end", "target_end"]
    assert [line[:2] for line in lines[1:]] == [
        ["one", "same"], ["one", "twin"], ["one", "gap"], ["one", "part"],
        ["two", "same"], ["two", "twin"], ["two", "gap"], ["two", "part"],
    ]  # fmt: skip
    assert lines[1][3:] == ["120", "120"]
    assert lines[3][3:] == ["120", "122"]
    assert lines[4][3:] == ["90", "100"]
    assert int(lines[1][2]) - int(lines[3][2]) == 13


def test_no_hit_is_high_enough(run_program, files):
    options = ["--queries", "q.fa", "--database", "d.fa", "--min-score", 10_000]
    done = search(run_program, files, *options, "-o", "o.tsv", "--alignments", "o.m8")
    assert done.rc == 0, done.stderr
    assert rows(files / "o.tsv") == [["query", "target", "score", "query_end", "target_end"]]
    assert (files / "o.m8").read_text() == ""
    assert search(run_program, files, *options, "-o", "e.tsv", "--evalue").rc == 0


def test_gpus_are_for_the_gpu_engine_and_at_least_one(run_program, files):
    options = ["--queries", "q.fa", "--database", "d.fa", "-o"]
    for output, gpus in (("o.tsv", 1), ("many.tsv", 4)):
        done = search(run_program, files, *options, output, "--gpus", gpus)
        assert done.rc == 0, done.stderr
    assert (files / "o.tsv").read_bytes() == (files / "many.tsv").read_bytes()
    done = search(run_program, files, *options, "-", "--gpus", 0)
    assert done.rc == 2
    assert "--gpus" in done.stderr.splitlines()[-1]


def test_evalues_and_blast_tables(run_program, files):
    done = search(run_program, files, "--queries", "q.fa", "--database", "d.fa", "-o", "o.tsv",
                  "--top", 3, "--evalue", "--alignments", "o.m8")  # fmt: skip
    assert done.rc == 0, done.stderr
    header, first, *_ = rows(files / "o.tsv")
    assert header[5:] == ["evalue", "bits"]
    assert float(first[5]) < 1e-50
    table = rows(files / "o.m8")
    assert table[0][:10] == ["one", "same", "100.000", "120", "0", "0", "1", "120", "1", "120"]
    assert table[2][:10] == ["one", "gap", "98.361", "122", "0", "1", "1", "120", "1", "122"]
    assert float(table[0][11]) == pytest.approx(float(first[6]), abs=1)


@pytest.mark.parametrize("options", [["--min-score", 99999], ["--queries", "x.fa"]])
def test_where_nothing_hits_there_are_tables_without_rows(run_program, files, options):
    (files / "x.fa").write_text(">x\nXXXXXXXX\n>y\nX\n")
    done = search(run_program, files, "--queries", "q.fa", "--database", "d.fa", "-o", "o.tsv.gz",
                  "--evalue", "--alignments", "o.m8", *options)  # fmt: skip
    assert done.rc == 0, done.stderr
    assert done.stderr.endswith(" queries on cpu: 0 hits\n")
    with gzip.open(files / "o.tsv.gz", "rt") as table:
        assert table.read() == "query\ttarget\tscore\tquery_end\ttarget_end\tevalue\tbits\n"
    assert (files / "o.m8").read_text() == ""


def test_a_prepared_folder_gives_the_same(run_program, files):
    options = ("--queries", "q.fa", "-o")
    done = run_program("index_database.py", "d.fa", "-o", "d.db", "--threads", 2, cwd=files)
    assert (done.rc, done.stderr) == (0, "6 sequences of 820 residues: d.db\n")
    assert search(run_program, files, "--database", "d.db", *options, "a.tsv").rc == 0
    assert search(run_program, files, "--database", "d.fa", *options, "b.tsv").rc == 0
    assert (files / "a.tsv").read_text() == (files / "b.tsv").read_text()
    other = search(run_program, files, "--database", "d.db", *options, "c.tsv",
                   "--matrix", "PAM30", "--gap-open", 9)  # fmt: skip
    assert other.rc == 0, other.stderr


def test_nucleotides(run_program, tmp_path):
    (tmp_path / "q.fa").write_text(">q\nGATTACAGATTACA\n")
    (tmp_path / "d.fa").write_text(">a\nCCCC\n>b\nTTGATTACAGNTTACATT\n")
    done = search(run_program, tmp_path, "--queries", "q.fa", "--database", "d.fa", "-o", "-",
                  "--match", 2, "--mismatch", -3, "--gap-open", 5, "--gap-extend", 2)  # fmt: skip
    assert done.stdout.splitlines()[1:] == ["q\tb\t23\t14\t16", "q\ta\t2\t6\t1"]


@pytest.mark.parametrize(
    ("options", "rc", "message"),
    [
        (("--evalue", "--gap-open", 5), 2,
         "no E-values for BLOSUM62 with gap-open 5 and gap-extend 1: parameters are published for "
         "11/2, 10/2, 9/2, 8/2, 7/2, 6/2, 13/1, 12/1, 11/1, 10/1, 9/1"),
        (("--match", 2, "--evalue"), 2,
         "E-values require a protein matrix: omit --evalue and --alignments with --match"),
        (("--match", 2, "--matrix", "PAM30"), 2,
         "--matrix cannot be combined with --match or --mismatch"),
        (("--mismatch", -2), 2, "--mismatch requires --match: use both, or --matrix"),
        (("--algorithm", "prefix-scan"), 2,
         "algorithm prefix-scan requires a GPU, but the backend is cpu: use --algorithm profile"),
        (("--gap-extend", "-1"), 2,
         "argument -E/--gap-extend: '-1' is not a whole number from 0 to 10000 "
         "(see search_database.py --help)"),
        (("--database", "none.fa"), 1, "none.fa: no such file or folder: check the path"),
        (("--queries", "empty.fa"), 1, "empty.fa, record 2 (y) has no sequence: remove it"),
        (("--queries", "nothing.fa"), 1, "nothing.fa: the file contains no sequences"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(run_program, files, options, rc, message):
    (files / "empty.fa").write_text(">x\nAR\n>y\n>z\nAR\n")
    (files / "nothing.fa").write_text("")
    done = search(run_program, files, "--queries", "q.fa", "--database", "d.fa", "-o", "o.tsv",
                  *options)  # fmt: skip
    assert (done.rc, done.stderr.splitlines()[-1]) == (
        rc, f"search_database.py: error: {message}"
    )  # fmt: skip
    assert not (files / "o.tsv").exists()
