"""bwarp fq2bam writes the files of bwarp map, and map with several read groups names each."""

import os
import re

import pysam
import pytest

from bwarp.cli.commands import fq2bam
from bwarp.cli.commands.fq2bam import READ_GROUP, bwa_words, index_beside, words_of_map
from bwarp.errors import UsageError
from bwarp.io.fastx import read_sequences
from tests.helpers.programs.mapped_reads import SCRIPT as MAP

SCRIPT = "fq2bam.py"
GROUPS = [rf"@RG\tID:L{lane}\tLB:lib1\tSM:s\tPL:ILLUMINA" for lane in (1, 2, 3)]
ALL = ("--sort", "--mark-duplicates")


@pytest.fixture(scope="module")
def folder(run_program, tmp_path_factory):
    """Write genome.fa, its index, two lanes of pairs that share some, and single reads."""
    folder = tmp_path_factory.mktemp("fq2bam")

    def run(script, *arguments):
        done = run_program(script, *arguments, cwd=folder)
        assert done.rc == 0, done.stderr

    run("simulate_genome.py", "-o", "genome.fa", "--length", 30_000, "--contigs", 2, "--seed", 3)
    run("index_reference.py", "genome.fa", "-o", "genome.index", "--backend", "cpu")
    reads = ("--reference", "genome.fa", "--seed", 5)
    run("simulate_reads.py", *reads, "-1", "a1.fq", "-2", "a2.fq", "--pairs", 300)
    run("simulate_reads.py", *reads, "-1", "s.fq", "--reads", 50)
    for end in "12":
        lines = (folder / f"a{end}.fq").read_text().splitlines()
        # Comments that are no tags, as those of Illumina.
        for header in range(0, 400, 4):
            lines[header] = f"@b.{lines[header][1:]} {end}:N:0:A"
        (folder / f"b{end}.fq").write_text("\n".join([*lines[:400], ""]))
    return folder


@pytest.fixture
def run(run_program, folder, tmp_path):
    """Return a function that runs a program in the folder of the reads and returns its outputs."""

    def run(script, *arguments):
        done = run_program(script, *arguments, "--backend", "cpu", cwd=folder)
        assert done.rc == 0, done.stderr
        return done.stderr

    return run


def contents(*paths) -> list[bytes]:
    return [path.read_bytes() for path in paths]


@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_the_files_are_those_of_map(run, tmp_path, ending):
    index = {"bam": "bai", "cram": "crai"}[ending]
    files = [(tmp_path / name / f"o.{ending}", tmp_path / name / "o.txt") for name in "ab"]
    for out, _ in files:
        out.parent.mkdir()
    pair = ("a1.fq", "a2.fq")
    more = ("--reference", "genome.fa") if ending == "cram" else ()
    run(
        MAP, "--index", "genome.index", "-1", pair[0], "-2", pair[1], "-R", GROUPS[0], *ALL, *more,
        "-o", files[0][0], "--duplicate-metrics", files[0][1], "--optical-distance", 30, "-Y",
    )  # fmt: skip
    said = run(
        SCRIPT, "--ref", "genome.fa", "--in-fq", *pair, GROUPS[0], "--out-bam", files[1][0],
        "--out-duplicate-metrics", files[1][1], "--bwa-options", "-Y -K 10000000", "--low-memory",
        "--num-gpus", 1, "--optical-duplicate-pixel-distance", 30,
    )  # fmt: skip
    assert "--low-memory has no effect: " in said
    assert "-K has no effect: " in said
    both = [contents(out, out.with_name(f"o.{ending}.{index}"), text) for out, text in files]
    assert both[0] == both[1]


def test_lanes_and_single_reads_keep_their_groups(run, folder, tmp_path):
    out = tmp_path / "o.bam"
    said = run(
        SCRIPT, "--ref", "genome.fa", "--in-fq", "a1.fq", "a2.fq", GROUPS[0], "--in-fq", "b1.fq",
        "b2.fq", GROUPS[1], "--in-se-fq", "s.fq", GROUPS[2], "--out-bam", out,
    )  # fmt: skip
    # The reads of the second lane are copies of some of the first, from the same library.
    assert int(re.search(r", (\d+) duplicates", said)[1]) >= 200
    with pysam.AlignmentFile(out) as file:
        lines = [line for line in str(file.header).splitlines() if line.startswith("@RG")]
        assert lines == [group.replace("\\t", "\t") for group in GROUPS]
        (program,) = file.header.to_dict()["PG"]
        assert "--mark-duplicates" in program["CL"]
        assert "--comments" not in program["CL"]
        groups = {name: set() for name in ("L1", "L2", "L3")}
        for record in file.fetch(until_eof=True):
            groups[record.get_tag("RG")].add(record.query_name)
    names = {
        group: {name for batch in read_sequences(folder / path) for name in batch.names()}
        for group, path in (("L1", "a1.fq"), ("L2", "b1.fq"), ("L3", "s.fq"))
    }
    plain = {group: {name.removesuffix("/1") for name in found} for group, found in names.items()}
    assert groups == plain


def test_groups_do_not_depend_on_threads(run, tmp_path):
    files = ("-1", "a1.fq", "b1.fq", "-2", "a2.fq", "b2.fq", "--read-group", *GROUPS[:2])
    outputs = []
    for threads in (1, 3):
        outputs.append(tmp_path / f"{threads}.bam")
        run(MAP, "--index", "genome.index", *files, *ALL, "-o", outputs[-1], "--threads", threads)
    first, other = contents(*outputs)
    assert first == other


def test_one_group_for_all_files_is_the_same_as_that_group_once(run, tmp_path):
    files = ("-1", "a1.fq", "b1.fq", "-2", "a2.fq", "b2.fq", "-o")
    for name, groups in (("1.sam", GROUPS[:1]), ("2.sam", [GROUPS[0]] * 2)):
        run(MAP, "--index", "genome.index", *files, tmp_path / name, "-R", *groups)
    first, other = contents(tmp_path / "1.sam", tmp_path / "2.sam")
    assert first == other


@pytest.mark.gpu
@pytest.mark.parametrize("ending", ["bam", "cram", "sam"])
@pytest.mark.parametrize("more", [(), ("--no-markdups",), ("--duplicate-tags",)])
def test_a_gpu_writes_the_records_of_the_cpu(run_program, folder, tmp_path, ending, more):
    lanes = ("--in-fq", "a1.fq", "a2.fq", GROUPS[0], "--in-fq", "b1.fq", "b2.fq", GROUPS[1])
    lines = []
    for backend in ("cpu", "cuda"):
        out = tmp_path / f"{backend}.{ending}"
        done = run_program(
            SCRIPT, "--ref", "genome.fa", *lanes, "--out-bam", out, *more, "--backend", backend,
            cwd=folder,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        lines.append(pysam.view("-h", "--no-PG", "-T", str(folder / "genome.fa"), str(out)))
    assert lines[0] == lines[1]
    if ending != "bam":
        # nvCOMP compresses BAM.
        first, other = contents(*(tmp_path / f"{name}.{ending}" for name in ("cpu", "cuda")))
        assert first == other


@pytest.mark.parametrize("reference", ["g.fa", "g.fasta.gz", "g.fna", "g", "g.gz"])
def test_the_index_is_beside_the_reference(reference):
    assert index_beside(f"/a.fa/{reference}") == "/a.fa/g.index"


def words(*typed) -> list[str]:
    return words_of_map(fq2bam.parse_options().parse_args(list(typed)))


BASE = ("--ref", "g.fa", "--out-bam", "o.bam")


def test_options_become_those_of_map():
    found = words(*BASE, "--in-se-fq", "s.fq", "--no-markdups", "--num-gpus", "2", "-t", "3")
    assert found == [
        "--index", "g.index", "--output", "o.bam", "--sort", "-1", "s.fq",
        "--read-group", READ_GROUP, "--gpus", "2", "--threads", "3", "--backend", "auto",
    ]  # fmt: skip


def test_the_distance_of_optical_duplicates_is_for_metrics_and_tags():
    given = (*BASE, "--in-se-fq", "s.fq", "--optical-duplicate-pixel-distance", "0")
    assert "--optical-distance" not in words(*given)
    for more in (("--out-duplicate-metrics", "m.txt"), ("--duplicate-tags",)):
        found = words(*given, *more)
        assert found[found.index("--optical-distance") :][:2] == ["--optical-distance", "0"]
    assert "--duplicate-tags" in found


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ((), "no reads are given: use --in-fq or --in-se-fq"),
        (
            ("--in-fq", "1.fq"),
            r"--in-fq 1.fq: give R1.fq R2.fq, and optionally a read group in quotes such as "
            r"'@RG\tID:1\tSM:sample'",
        ),
        (
            ("--in-se-fq", "1.fq", "2.fq", "@RG"),
            r"--in-se-fq 1.fq 2.fq @RG: give R.fq, and optionally a read group in quotes such as "
            r"'@RG\tID:1\tSM:sample'",
        ),
        (
            ("--in-fq", "1", "2", GROUPS[0], "--in-fq", "3", "4"),
            "some files have no read group: give one with each --in-fq, or none",
        ),
        (
            ("--in-fq", "1", "2", "--bwa-options", "-M -U 4"),
            "--bwa-options: -U is not supported: use any of -A, -B, -C, -E, -I, -K, -L, -M, -O, "
            "-T, -Y, -a, -v",
        ),
        *(
            (
                ("--in-fq", "1", "2", f"--bwa-options={typed}"),
                f"--bwa-options: {refused} is not supported: use any of -A, -B, -C, -E, -I, -K, "
                "-L, -M, -O, -T, -Y, -a, -v",
            )
            for typed, refused in (
                ("-Yp", "-Yp"),
                ("-YU 4", "-YU"),
                ("-2 4", "-2"),
                ("x -Y", "x"),
                ("-Y x", "x"),
                ("-", "-"),
            )
        ),
        (("--in-fq", "1", "2", "--bwa-options", "-Y -T"), "--bwa-options: -T has no value"),
        (
            ("--in-fq", "1", "2", "--no-markdups", "--out-duplicate-metrics", "m.txt"),
            "--out-duplicate-metrics cannot be combined with --no-markdups",
        ),
        (
            ("--in-fq", "1", "2", "--bwa-options", "-R 'x"),
            '--bwa-options "-R \'x": a quotation mark is missing',
        ),
    ],
)
def test_usage_errors(typed, message):
    with pytest.raises(UsageError) as error:
        words(*BASE, *typed)
    assert str(error.value) == message


@pytest.mark.parametrize("typed", ["-Y", "-M", "-T 8", "-L -5 -Y"])
def test_a_single_option_of_bwa(typed):
    found = words(*BASE, "--in-fq", "1", "2", "--bwa-options", typed)
    assert " ".join(found[-6 - len(typed.split()) : -6]) == typed


def test_values_of_options_of_bwa_may_be_negative_or_attached():
    assert bwa_words("-T30 -B 4 -L -5") == ["-T30", "-B", "4", "-L", "-5"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (
            ("-R", *GROUPS),
            "--read-group is given 3 times for 2 files: give one for all reads, or one for each "
            "file of -1 and --single",
        ),
        (
            ("-R", GROUPS[0], r"@RG\tID:L1"),
            "read group 'L1' is given with different lines: give each group another ID",
        ),
        (
            ("-R", *GROUPS[:2], "--comments"),
            "several read groups require FASTQ without --comments: map each file separately, and "
            "use bwarp merge",
        ),
        (
            ("-R", GROUPS[0], r"@RG\tID:x\tPU:auto"),
            "PU:auto requires a single read group: write the platform units",
        ),
    ],
)
def test_groups_that_are_refused(run_program, folder, tmp_path, typed, message):
    files = ("--index", folder / "genome.index", "-1", folder / "a1.fq", folder / "b1.fq")
    done = run_program(MAP, *files, *typed, "-o", "o.bam", "--backend", "cpu", cwd=tmp_path)
    assert (done.rc, done.stderr) == (2, f"map_reads.py: error: {message}\n")
    assert os.listdir(tmp_path) == []


def test_a_missing_index_says_how_to_make_it(run_program, folder, tmp_path):
    reads = ("--in-fq", folder / "a1.fq", folder / "a2.fq")
    done = run_program(
        SCRIPT, "--ref", "x.fa", *reads, "--out-bam", "o.bam", "--backend", "cpu", cwd=tmp_path
    )
    assert (done.rc, done.stderr) == (
        1,
        "fq2bam.py: error: x.index: no such index: make it with bwarp index REF.fa -o x.index\n",
    )
