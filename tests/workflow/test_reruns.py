"""Jobs that run again after a change, and results that are kept."""

import json
import re

import pytest

CONFIG = {
    "reference": "small.fa",
    "samples": "units.tsv",
    "backend": "cpu",
    "index": {"sa_rate": 4, "occ_rate": 64},
    "map": {"clip": 5},
    "seeds": {"queries": "a.fq", "k": 20, "mismatches": 1},
}


@pytest.fixture(scope="module")
def built(make_copy):
    """Make a copy with two mapped samples, and with seeds of one of them."""
    copy = make_copy(forks=True)
    letters = (copy / "small.fa").read_text().split("\n")[1]
    for name, at in (("a", 500), ("b", 900), ("c", 1300)):
        (copy / f"{name}.fq").write_text(f"@{name}\n{letters[at : at + 80]}\n+\n{'I' * 80}\n")
    (copy / "units.tsv").write_text("sample\tunit\tfq1\na\t1\ta.fq\na\t2\tb.fq\nb\t1\tc.fq\n")
    copy.snakemake(*with_settings(copy))
    assert copy.planned(*with_settings(copy)) == []
    return copy


def with_settings(copy, section=None, **changed):
    """Return arguments for a run with changed settings of a section."""
    settings = {**CONFIG, **({section: CONFIG[section] | changed} if section else {})}
    (copy / "mine.yaml").write_text("".join(f"{key}: {value}\n" for key, value in settings.items()))
    return ("map", "seeds", "--configfile", "mine.yaml")


def test_another_sampling_rate_leaves_results_as_they_are(built):
    made = built / "results/map/a.bam"
    before = made.stat().st_mtime_ns
    for rate in (16, 4, 16, 4):
        built.snakemake(*with_settings(built, "index", sa_rate=rate))
        description = json.loads((built / "results/index/small/index.json").read_text())
        assert description["sa_rate"] == rate
        assert (built / "results/index/small/reverse_blocks.npy").exists()
        assert f"sa_rate (p) {rate} " in (built / "results/index/small.txt").read_text()
        assert built.planned(*with_settings(built, "index", sa_rate=rate)) == []
    assert made.stat().st_mtime_ns == before


def test_another_setting_beside_a_sampling_rate_is_not_missed(built):
    """A rebuilt index hides other changes, which must still be noticed."""
    arguments = with_settings(built, "index", sa_rate=8)
    text = (built / "mine.yaml").read_text()
    (built / "mine.yaml").write_text(text.replace("'clip': 5", "'clip': 6"))
    assert set(built.planned(*arguments)) == {"resample_index", "map_reads", "merge_alignments"}


def test_another_genome_runs_everything_again(built):
    text = (built / "small.fa").read_text()
    try:
        (built / "small.fa").write_text(text[:-9] + "ACGTACGT\n")
        planned = set(built.planned(*with_settings(built)))
    finally:
        (built / "small.fa").write_text(text)
    # The contents of small files are compared, not only their times.
    assert built.planned(*with_settings(built)) == []
    assert planned >= {"index_reference", "map_reads", "merge_alignments", "find_seeds"}


def test_a_deleted_sample_is_made_again_and_no_other(built):
    before = (built / "results/map/b.bam").stat().st_mtime_ns
    (built / "results/map/a.bam").unlink()
    said = built.snakemake("-n", *with_settings(built))
    jobs = re.findall(r"^rule (\w+):\n(?: .+\n)*? +wildcards: sample=(\w+)", said, re.MULTILINE)
    assert sorted(jobs) == [("map_reads", "a"), ("map_reads", "a"), ("merge_alignments", "a")]
    built.snakemake(*with_settings(built))
    assert (built / "results/map/b.bam").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("section", "changed", "reason"),
    [
        ("map", {"clip": 6}, "Params have changed since last execution"),
        ("index", {"sa_rate": 8}, "Params have changed since last execution"),
    ],
)
def test_a_dry_run_says_why(built, section, changed, reason):
    said = built.snakemake("-n", *with_settings(built, section, **changed))
    jobs = re.findall(r"^rule \w+:\n(?: .+\n)+", said, re.MULTILINE)
    assert jobs
    assert all("    reason: " in job for job in jobs)
    assert re.search(f"^    reason: .*{reason}", said, re.MULTILINE)
