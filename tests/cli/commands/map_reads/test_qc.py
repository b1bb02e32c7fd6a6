"""bwarp map and bwarp merge --qc: the files of samtools and mosdepth, in every format."""

import pytest

from tests.helpers.oracles.samtools_texts import check_texts_of_samtools
from tests.helpers.oracles.slow_depths import slow_depths, slow_distribution, slow_summary

ENDINGS = {
    "flagstat", "idxstats", "stats", "mosdepth.global.dist.txt", "mosdepth.summary.txt",
}  # fmt: skip


@pytest.fixture
def checked(map_reads, folder, tmp_path):
    def run(output, *options):
        files = ("-1", folder / "1.fq", "-2", folder / "2.fq")
        done = map_reads(
            *files, "-o", tmp_path / output, "--sort", "--qc", tmp_path / f"{output}.qc", *options
        )
        assert done.rc == 0, done.stderr
        texts = {
            path.name.removeprefix("s."): path.read_bytes()
            for path in (tmp_path / f"{output}.qc").iterdir()
        }
        return tmp_path / output, texts

    return run


def check(bam, texts: dict[str, bytes]) -> None:
    """Compare files with those of samtools and with slow depths."""
    texts = {ending: text.decode() for ending, text in texts.items()}
    check_texts_of_samtools(bam, texts)
    depths = slow_depths(bam)
    assert texts["mosdepth.global.dist.txt"] == slow_distribution(depths)
    assert texts["mosdepth.summary.txt"] == slow_summary(depths, None)


@pytest.mark.parametrize("options", [(), ("--mark-duplicates", "--all")])
def test_every_format(checked, options):
    bam, texts = checked("s.bam", *options)
    assert set(texts) == ENDINGS
    check(bam, texts)
    assert checked("s.sam", *options)[1] == texts
    assert checked("s.cram", *options)[1] == texts


def test_threads_and_memory_change_nothing(checked, tmp_path):
    (tmp_path / "r.bed").write_text("chr2\t100\t2000\tname\nchr1\t5\t50\n")
    regions = ("--qc-regions", tmp_path / "r.bed")
    _, texts = checked("s.bam", *regions, "--threads", 1)
    assert set(texts) == ENDINGS | {"mosdepth.region.dist.txt", "regions.bed.gz"}
    assert checked("s.bam", *regions, "--threads", 3, "--sort-memory", 1)[1] == texts


def test_merged_units(map_reads, run_program, folder, tmp_path):
    for unit in ("a", "b"):
        done = map_reads(
            "-1", folder / "1.fq", "-2", folder / "2.fq", "-o", tmp_path / f"{unit}.bam", "--sort",
            "--mark-duplicates", "--stats", tmp_path / f"{unit}.stats.json",
            "-R", rf"@RG\tID:{unit}\tSM:s\tLB:l",
        )  # fmt: skip
        assert done.rc == 0, done.stderr
    done = run_program(
        "merge_alignments.py", "a.bam", "b.bam", "-o", "s.bam", "--mark-duplicates", "--qc", "qc",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    files = (tmp_path / "qc").iterdir()
    texts = {path.name.removeprefix("s."): path.read_bytes() for path in files}
    assert set(texts) == ENDINGS
    duplicates = int(texts["flagstat"].decode().splitlines()[4].split()[0])
    assert duplicates > 1000
    check(tmp_path / "s.bam", texts)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--qc", "q"), "--qc requires --sort"),
        (("--sort", "--qc-regions", "r.bed"), "--qc-regions requires --qc"),
        (("--sort", "--qc", "s.bam"), "s.bam: the name is used by another file of this run: choose "
         "another output"),
        (("--sort", "--qc", "no/q"), "no/q: no such folder no: create it, or choose another "
         "output"),
    ],
)  # fmt: skip
def test_usage(map_reads, folder, tmp_path, options, message):
    (tmp_path / "r.bed").write_text("chr1\t1\t2\n")
    done = map_reads("-1", folder / "1.fq", "-o", "s.bam", *options, cwd=tmp_path)
    assert (done.rc, done.stderr) == (2, f"map_reads.py: error: {message}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["r.bed"]


def test_unknown_regions(map_reads, folder, tmp_path):
    (tmp_path / "r.bed").write_text("chrQ\t1\t2\n")
    options = ("--sort", "--qc", "q", "--qc-regions", "r.bed")
    done = map_reads("-1", folder / "1.fq", "-o", "s.bam", *options, cwd=tmp_path)
    assert done.rc == 1
    assert "r.bed, line 1: no contig chrQ in the reference" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r.bed"]
