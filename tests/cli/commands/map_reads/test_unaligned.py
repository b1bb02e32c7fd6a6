"""bwarp map on unaligned BAM and CRAM: the same as on FASTQ with tags in comments."""

import json
import shutil
import subprocess
import sys

import pysam
import pytest

from tests.helpers.programs.mapped_reads import records

TAGS = "RX,BC,MI"


@pytest.fixture(scope="module")
def unaligned(folder):
    """Write pairs, some without one end, as BAM with useful and other tags."""
    both = [(folder / f"{end}.fq").read_text().splitlines() for end in (1, 2)]
    text = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n@RG\tID:g1\tSM:s\tPU:cell.1\n"
    for number in range(len(both[0]) // 4):
        for end, lines in enumerate(both):
            name, letters, _, qualities = lines[4 * number : 4 * number + 4]
            if (number + end) % 20:
                tags = f"RG:Z:g1\tRX:Z:ACG{'ACGT'[number % 4]}\tBC:Z:GG\tMI:i:{number}\tNM:i:3"
                flag = 77 if end == 0 else 141
                fields = [name[1:].removesuffix(f"/{end + 1}"), str(flag), *"*00**00"]
                text += "\t".join([*fields, letters, qualities, tags]) + "\n"
    (folder / "unaligned.sam").write_text(text)
    for ending in ("bam", "cram"):
        path = folder / f"unaligned.{ending}"
        pysam.view("-O", ending, "-o", str(path), f"{folder}/unaligned.sam", catch_stdout=False)
    return folder / "unaligned.bam"


@pytest.fixture(scope="module")
def fastq(folder, unaligned):
    pysam.fastq("-T", TAGS, "-o", f"{folder}/unaligned.fq", str(unaligned))
    return folder / "unaligned.fq"


@pytest.mark.parametrize("ending", ["bam", "cram"])
def test_records_are_those_of_fastq(map_reads, unaligned, fastq, tmp_path, ending):
    group = ("--read-group", r"@RG\tID:g1\tSM:s\tPU:cell.1")
    expected = map_reads(
        "-1", fastq, "-p", "--comments", *group, "-o", "-", "--stats", tmp_path / "a.json"
    )  # fmt: skip
    assert expected.rc == 0, expected.stderr
    assert "\tRX:Z:ACGT\tBC:Z:GG\tMI:i:3" in expected.stdout
    found = map_reads(
        "-1", unaligned.with_suffix(f".{ending}"), "-o", "-", "--threads", 3,
        "--stats", tmp_path / "b.json",
    )  # fmt: skip
    assert found.rc == 0, found.stderr
    assert found.stdout == expected.stdout
    assert found.stderr == expected.stderr
    assert json.loads((tmp_path / "a.json").read_text()) == json.loads(
        (tmp_path / "b.json").read_text()
    )


@pytest.mark.skipif(shutil.which("bwa") is None, reason="needs bwa")
def test_reads_and_tags_are_those_of_bwa(map_reads, folder, unaligned, fastq, tmp_path):
    shutil.copy(folder / "genome.fa", tmp_path)
    subprocess.run(["bwa", "index", "genome.fa"], cwd=tmp_path, check=True, capture_output=True)
    command = ["bwa", "mem", "-C", "-p", "-o", "bwa.sam", "genome.fa", fastq]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert map_reads("-1", unaligned, "-o", tmp_path / "ours.sam").rc == 0
    ours, theirs = (
        [
            (
                r.query_name,
                r.flag & 0xC1,
                r.get_forward_sequence(),
                *map(r.get_tag, TAGS.split(",")),
            )
            for r in records(tmp_path / name)
            if not r.is_supplementary
        ]
        for name in ("ours.sam", "bwa.sam")
    )
    assert len(ours) > 2500
    assert ours == theirs


def test_single_reads(map_reads, folder, tmp_path):
    with pysam.FastxFile(str(folder / "single.fq.gz")) as file:
        lines = [f"{r.name}\t4\t*\t0\t0\t*\t*\t0\t0\t{r.sequence}\t{r.quality}\n" for r in file]
    (tmp_path / "s.sam").write_text("@HD\tVN:1.6\n" + "".join(lines))
    pysam.view("-b", "-o", f"{tmp_path}/s.bam", f"{tmp_path}/s.sam", catch_stdout=False)
    found = map_reads("-1", tmp_path / "s.bam", "-o", "-")
    assert found.stdout == map_reads("-1", folder / "single.fq.gz", "--comments", "-o", "-").stdout
    assert "no mate" not in found.stderr
    paf = map_reads("-1", tmp_path / "s.bam", "-o", tmp_path / "s.paf")
    assert paf.rc == 0, paf.stderr


def test_a_read_group_that_is_typed_replaces_theirs(map_reads, unaligned):
    found = map_reads("-1", unaligned, "-o", "-", "--read-group", r"@RG\tID:mine\tSM:s")
    assert "@RG\tID:mine\tSM:s\n" in found.stdout
    assert "RG:Z:g1" not in found.stdout
    assert "\tRG:Z:mine" in found.stdout


@pytest.fixture(scope="module")
def groups(unaligned):
    """Write the same reads in two read groups, some without a group."""
    text = unaligned.with_suffix(".sam").read_text()
    text = text.replace("@RG", "@RG\tID:h\tSM:s\tPL:ILLUMINA\n@RG", 1)
    lines = text.splitlines(keepends=True)
    for i, line in enumerate(lines):
        if line.startswith("@") or i % 3 == 0:
            continue
        lines[i] = line.replace("\tRG:Z:g1", "\tRG:Z:h" if i % 3 == 1 else "")
    sam = unaligned.with_name("groups.sam")
    sam.write_text("".join(lines))
    pysam.view("-b", "-o", str(sam.with_suffix(".bam")), str(sam), catch_stdout=False)
    return sam.with_suffix(".bam")


def groups_of(file) -> dict[tuple[str, str], str | None]:
    """Return the read group of each read by name and bases; orphans are single reads now."""
    return {
        (r.query_name, r.get_forward_sequence()): r.get_tag("RG") if r.has_tag("RG") else None
        for r in file.fetch(until_eof=True)
        if not r.is_supplementary
    }


@pytest.mark.parametrize("form", ["sam", "bam"])
def test_reads_of_several_groups_keep_theirs(map_reads, groups, fastq, tmp_path, form):
    pysam.fastq("-T", f"RG,{TAGS}", "-o", f"{tmp_path}/g.fq", str(groups))
    output = ("-o", tmp_path / f"found.{form}", "--sort") if form == "bam" else ("-o", "-")
    found = map_reads("-1", groups, *output)
    assert found.rc == 0, found.stderr
    if form == "sam":
        expected = map_reads("-1", tmp_path / "g.fq", "-p", "--comments", "-o", "-").stdout
        # The output of samtools has no header lines of read groups.
        lines = found.stdout.splitlines()
        assert [line for line in lines if not line.startswith("@RG")] == expected.splitlines()
        return
    with pysam.AlignmentFile(tmp_path / "found.bam") as file:
        assert [group["ID"] for group in file.header["RG"]] == ["h", "g1"]
        assert file.header["RG"][0]["PL"] == "ILLUMINA"
        mapped = groups_of(file)
    with pysam.AlignmentFile(groups, check_sq=False) as file:
        given = groups_of(file)
    assert set(given.values()) == {"g1", "h", None}
    assert mapped == given


def test_files_of_a_group_each(map_reads, groups, unaligned, tmp_path):
    text = unaligned.with_suffix(".sam").read_text().replace("ID:g1", "ID:x")
    (tmp_path / "x.sam").write_text(text.replace("RG:Z:g1", "RG:Z:x"))
    pysam.view("-b", "-o", f"{tmp_path}/x.bam", f"{tmp_path}/x.sam", catch_stdout=False)
    found = map_reads("-1", unaligned, tmp_path / "x.bam", "-o", "-")
    assert found.rc == 0, found.stderr
    assert found.stdout.count("\tRG:Z:g1") == found.stdout.count("\tRG:Z:x") > 2000


def test_groups_of_one_name_are_refused(map_reads, unaligned, tmp_path):
    text = unaligned.with_suffix(".sam").read_text().replace("PU:cell.1", "PU:cell.2")
    (tmp_path / "x.sam").write_text(text)
    pysam.view("-b", "-o", f"{tmp_path}/x.bam", f"{tmp_path}/x.sam", catch_stdout=False)
    done = map_reads("-1", unaligned, "x.bam", "-o", "out.sam", cwd=tmp_path)
    assert done.rc == 1
    assert done.stderr.endswith(
        "error: x.bam: read group 'g1' has a different header line in an earlier file: give it "
        "another ID (samtools addreplacerg), or use one group for all reads (--read-group)\n"
    )
    assert not (tmp_path / "out.sam").exists()
    one = ("--read-group", r"@RG\tID:1\tSM:s")
    assert map_reads("-1", unaligned, "x.bam", "-o", "out.sam", *one, cwd=tmp_path).rc == 0


@pytest.mark.parametrize("name", ["unaligned", "groups"])
def test_standard_input(map_reads, checkout, folder, request, name):
    path = request.getfixturevalue(name)
    expected = map_reads("-1", path, "-o", "-")
    command = ["scripts/map_reads.py", "--index", folder / "index", "-1", "-", "-o", "-"]
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as sender:
        found = subprocess.run(
            [sys.executable, *command, "--backend", "cpu"], cwd=checkout, stdin=sender.stdout,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout == expected.stdout
