"""bwarp simulate-genome: its files, its examples and its errors."""

import gzip
import hashlib
import shlex

import pytest

SCRIPT = "simulate_genome.py"
SMALL = ("--length", 5000, "--contigs", 2, "--seed", 3)


def test_the_same_options_give_the_same_file(run_program, tmp_path):
    plain, zipped = tmp_path / "g.fa", tmp_path / "g.fa.gz"
    one = run_program(SCRIPT, "-o", plain, *SMALL, "--threads", 1)
    many = run_program(SCRIPT, "-o", zipped, *SMALL, "--threads", 3)
    assert (one.rc, one.stdout) == (0, "")
    assert one.stderr == f"{plain}: 5,000 bases in 2 contigs\n"
    assert many.rc == 0
    assert gzip.decompress(zipped.read_bytes()) == plain.read_bytes()
    assert hashlib.md5(plain.read_bytes()).hexdigest() == "d0609018c7d516bb7a18d2c827541821"


def test_options_of_form(run_program, tmp_path):
    path = tmp_path / "g.fa"
    options = ("--line-width", 50, "--lower-case-repeats", "--iupac-letters", 30)
    assert run_program(SCRIPT, "-o", path, *SMALL, *options).rc == 0
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith(">")] == [">chr1", ">chr2"]
    assert max(map(len, lines)) == 50
    letters = "".join(line for line in lines if not line.startswith(">"))
    assert len(letters) == 5000
    assert set("acgtACGT") <= set(letters)
    assert set(letters) - set("acgtACGTNn") & set("RYSWKMryswkm")


def test_standard_output(run_program, tmp_path):
    path = tmp_path / "g.fa"
    run_program(SCRIPT, "-o", path, *SMALL)
    piped = run_program(SCRIPT, "-o", "-", *SMALL)
    assert piped.stdout == path.read_text()


def test_the_examples_in_the_help_run(run_program, tmp_path):
    shown = run_program(SCRIPT, "--help").stdout
    examples = shown.split("examples:\n")[1].split("\nexit codes:\n")[0]
    examples = examples.replace("\\\n", " ").strip().splitlines()
    assert len(examples) == 3
    for example in examples:
        # The example of a whole human-like genome runs at a thousandth of its size.
        program, name, *arguments = shlex.split(example.replace("3100000000", "3100000"))
        assert (program, name) == ("bwarp", "simulate-genome")
        assert run_program(SCRIPT, *arguments, cwd=tmp_path).rc == 0
    made = {path.name for path in tmp_path.iterdir()}
    assert made == {"demo.fa", "human_like.fa.gz", "plain.fa"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--gc", "1.5"), "gc 1.5 is not from 0 to 1"),
        (
            ("--length", "3", "--contigs", "4"),
            "length 3 is too short for 4 contigs: each contig must have at least 1 base",
        ),
        (
            ("--length", "many"),
            "argument --length: 'many' is not a whole number from 1 to 1099511627776 "
            "(see simulate_genome.py --help)",
        ),
        (
            ("--repeat-fraction", "0.99"),
            "the repeat, tandem, duplication and n fractions sum to 1.09: the maximum is 1",
        ),
    ],
)
def test_refusals_of_options(run_program, tmp_path, options, message):
    done = run_program(SCRIPT, "-o", tmp_path / "g.fa", *options)
    assert done.rc == 2
    assert done.stderr == f"simulate_genome.py: error: {message}\n"
    assert list(tmp_path.iterdir()) == []


def test_an_output_that_cannot_be_written(run_program, tmp_path):
    (tmp_path / "file").write_text("")
    done = run_program(SCRIPT, "-o", tmp_path, *SMALL)
    assert done.rc == 2
    assert done.stderr == (
        f"simulate_genome.py: error: {tmp_path}: is a folder: give the name of a file to write\n"
    )
    done = run_program(SCRIPT, "-o", tmp_path / "file" / "g.fa", *SMALL)
    assert done.rc == 2
    assert done.stderr == (
        f"simulate_genome.py: error: {tmp_path / 'file'}: is a file, not a folder: choose "
        "another output\n"
    )
