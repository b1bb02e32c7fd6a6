"""bwarp simulate-reads: its files, its examples and its errors."""

import gzip
import hashlib
import shlex

import pytest

from bwarp.simulation.reads import parse_read_name

SCRIPT = "simulate_reads.py"


@pytest.fixture(scope="module")
def folder(run_program, tmp_path_factory):
    """Return a folder with demo.fa, 20,000 bases in four contigs."""
    folder = tmp_path_factory.mktemp("reference")
    arguments = ("-o", "demo.fa", "--length", 20_000, "--seed", 7)
    assert run_program("simulate_genome.py", *arguments, cwd=folder).rc == 0
    return folder


@pytest.fixture
def reference(folder):
    return folder / "demo.fa"


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


def test_pairs_are_the_same_whatever_the_threads(run_program, reference, tmp_path):
    for threads in (1, 3):
        outputs = [tmp_path / f"{threads}.{end}.fq" for end in (1, 2)]
        vcf = tmp_path / f"{threads}.vcf"
        done = run_program(
            SCRIPT,
            "--reference",
            reference,
            "-1",
            outputs[0],
            "-2",
            outputs[1],
            "--pairs",
            3000,
            "--variant-rate",
            0.01,
            "--threads",
            threads,
            "--vcf",
            vcf,
        )
        assert (done.rc, done.stdout) == (0, "")
        assert done.stderr == (
            f"{outputs[0]} {outputs[1]}: 3,000 pairs of an individual with 190 variants\n"
        )
        assert [md5(path) for path in (*outputs, vcf)] == [
            "35a87e3c40e9d59ebff983384237dff0",
            "a77a3f4cec9bb0e2c15595c84d558458",
            "cb8ed459153cb658ec81ad8bab7d3f7f",
        ]


def test_single_reads_compressed(run_program, reference, tmp_path):
    plain, zipped = tmp_path / "r.fq", tmp_path / "r.fq.gz"
    for output in (plain, zipped):
        arguments = ("--reference", reference, "-1", output, "--reads", 500, "--read-length", 80)
        assert run_program(SCRIPT, *arguments).rc == 0
    assert gzip.decompress(zipped.read_bytes()) == plain.read_bytes()
    assert md5(plain) == "030d15cd1a612fdb5329517c8d5d3e77"
    lines = plain.read_text().splitlines()
    assert len(lines) == 2000
    assert {len(line) for line in lines[1::2] if line != "+"} == {80}


def test_reads_are_the_same_from_a_compressed_reference(run_program, reference, tmp_path):
    zipped = tmp_path / "demo.fa.gz"
    zipped.write_bytes(gzip.compress(reference.read_bytes()))
    for source, name in ((reference, "a.fq"), (zipped, "b.fq")):
        arguments = ("--reference", source, "-1", tmp_path / name, "--reads", 100)
        assert run_program(SCRIPT, *arguments).rc == 0
    assert md5(tmp_path / "a.fq") == md5(tmp_path / "b.fq")


def test_chunks_join_without_a_seam(run_program, reference, tmp_path):
    """A run of several chunks begins with the reads of a smaller run."""
    for count, name in ((131_072 + 10, "long.fq"), (1000, "short.fq")):
        arguments = ("--reference", reference, "-1", tmp_path / name, "--reads", count)
        assert run_program(SCRIPT, *arguments, "--read-length", 20).rc == 0
    text = (tmp_path / "long.fq").read_bytes()
    assert text.startswith((tmp_path / "short.fq").read_bytes())
    numbers = [parse_read_name(line[1:]).number for line in text.decode().splitlines()[::4]]
    assert numbers == list(range(131_082))


def test_odd_contig_names_survive(run_program, tmp_path):
    names = ["HLA-A*01:01:01", "gi|568815597|ref", "chr1%:@#/é", "*"]
    reference = tmp_path / "odd.fa"
    reference.write_text("".join(f">{name} text\n{'ACGTTGCAAT' * 30}\n" for name in names))
    output = tmp_path / "r.fq"
    arguments = ("--reference", reference, "-1", output, "--reads", 200)
    assert run_program(SCRIPT, *arguments, "--random-fraction", 0).rc == 0
    found = {parse_read_name(line[1:]).contig for line in output.read_text().splitlines()[::4]}
    assert found == set(names)


def test_no_reads_make_empty_files(run_program, reference, tmp_path):
    output = tmp_path / "none.fq"
    arguments = ("--reference", reference, "-1", output, "--reads", 0)
    assert run_program(SCRIPT, *arguments).rc == 0
    assert output.read_bytes() == b""


def test_the_examples_in_the_help_run(run_program, folder):
    shown = run_program(SCRIPT, "--help").stdout
    examples = shown.split("examples:\n")[1].split("\nexit codes:\n")[0]
    examples = examples.replace("\\\n", " ").strip().splitlines()
    assert len(examples) == 3
    for example in examples:
        program, name, *arguments = shlex.split(example)
        assert (program, name) == ("bwarp", "simulate-reads")
        assert run_program(SCRIPT, *arguments, cwd=folder).rc == 0
    assert {"R1.fq.gz", "R2.fq.gz", "single.fq", "truth.vcf", "exact.fq"} <= {
        path.name for path in folder.iterdir()
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("-1", "a.fq", "--pairs", "5"),
            "--pairs requires a second file: use -2, or --reads for single reads",
        ),
        (
            ("-1", "a.fq", "-2", "b.fq", "--reads", "5"),
            "--reads simulates single reads: omit -2, or use --pairs",
        ),
        (
            ("-1", "a.fq", "-2", "a.fq", "--pairs", "5"),
            "a.fq: the name is used by another file of this run: choose another output",
        ),
        (
            ("-1", "a.fq"),
            "one of the arguments --pairs --reads is required (see simulate_reads.py --help)",
        ),
        (
            ("-1", "a.fq", "--reads", "5", "--error-rate-end", "1.2"),
            "error rate end 1.2 is not from 0 to 1",
        ),
        (
            ("-1", "a.fq", "--reads", "5", "--variant-rate=-1"),
            "variant rate -1.0 is not from 0 to 1",
        ),
        (
            ("-1", "a.fq", "-2", "b.fq", "--pairs", "5", "--insert-mean", "100"),
            "insert mean 100 is not from the read length 150 to 2^31: the insert size includes "
            "both reads",
        ),
    ],
)
def test_refusals_of_options(run_program, reference, tmp_path, options, message):
    done = run_program(SCRIPT, "--reference", reference, *options, cwd=tmp_path)
    assert done.rc == 2
    assert done.stderr == f"simulate_reads.py: error: {message}\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            ">c\nACGT\n",
            (),
            "the longest contig has 4 bases, too few for reads of 150: use a longer reference "
            "or shorter reads",
        ),
        (
            f">c\n{'ACGTN' * 100}\n",
            ("--read-length", "20"),
            "no position for a fragment of about 20 bases was found in 10,000 draws, because "
            "contigs are too short or have too many N: use a smaller insert size, shorter reads "
            "or another reference",
        ),
        (
            f">{'x' * 200}\n{'ACGT' * 100}\n",
            (),
            f"contig {'x' * 40!r}...: the name has 200 characters when percent-encoded, but at "
            "most 168 fit in a read name: shorten it",
        ),
        (
            "",
            (),
            "ref.fa: the file contains no sequences",
        ),
    ],
)
def test_references_that_cannot_be_used(run_program, tmp_path, text, options, message):
    (tmp_path / "ref.fa").write_text(text)
    arguments = ("--reference", "ref.fa", "-1", "a.fq", "--reads", 5, "--random-fraction", 0)
    done = run_program(SCRIPT, *arguments, *options, cwd=tmp_path)
    assert done.rc == 1
    assert done.stderr == f"simulate_reads.py: error: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["ref.fa"]


def test_a_missing_reference(run_program, tmp_path):
    arguments = ("--reference", "none.fa", "-1", "a.fq", "--reads", 5)
    done = run_program(SCRIPT, *arguments, cwd=tmp_path)
    assert done.rc == 1
    assert done.stderr == (
        "simulate_reads.py: error: none.fa: no such file or folder: check the path\n"
    )


def test_an_output_in_a_missing_folder(run_program, reference, tmp_path):
    (tmp_path / "file").write_text("")
    output = tmp_path / "file" / "a.fq"
    done = run_program(SCRIPT, "--reference", reference, "-1", output, "--reads", 5)
    assert done.rc == 2
    assert done.stderr == (
        f"simulate_reads.py: error: {tmp_path / 'file'}: is a file, not a folder: choose another "
        "output\n"
    )
