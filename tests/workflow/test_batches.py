"""A unit mapped in parts has the same bytes as one mapped by one job."""

import json
import re

import pytest

from tests.helpers.cases.small_genome import write_genome
from tests.helpers.programs.programs_here import run_here

N_PAIRS = 500

RESULTS = ("bam", "bam.bai", "stats.json", "dedup.txt")


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy with two samples, one of them with two units, and the bytes of one job."""
    copy = make_copy(forks=True)
    write_genome(copy / "small.fa", 20_000)
    simulated = ("--reference", copy / "small.fa", "--read-length", 80)
    for seed, name in ((1, "p"), (2, "q")):
        ends = ("-1", copy / f"{name}1.fq.gz", "-2", copy / f"{name}2.fq.gz", "--pairs", N_PAIRS)
        done = run_here("simulate_reads", *simulated, *ends, "--seed", seed, folder=copy.folder)
        assert done.rc == 0, done.said
    (copy / "units.tsv").write_text(
        "sample\tunit\tfq1\tfq2\ns\ta.1\tp1.fq.gz\tp2.fq.gz\ns\tb\tq1.fq.gz\t\nt\tb\tq2.fq.gz\t\n"
    )
    return copy


def settings(copy, batch_reads, more=""):
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nbackend: cpu\n"
        f"map: {{batch_reads: {batch_reads}, clip: 7{more}}}\n"
    )
    return ("map", "--configfile", "mine.yaml")


def written(copy):
    return {
        f"{sample}.{ending}": (copy / f"results/map/{sample}.{ending}").read_bytes()
        for sample in ("s", "t")
        for ending in RESULTS
        if (copy / f"results/map/{sample}.{ending}").exists()
    }


def test_every_part_has_a_timeline(copy):
    planned = copy.planned("report", *settings(copy, 300, ", timeline: true"))
    # Also for a unit of one part.
    assert planned.count("draw_timeline") == planned.count("map_part") + planned.count("map_reads")
    assert planned.count("map_part") > 2


@pytest.mark.parametrize("more", ["", ", mark_duplicates: true, orientation: FR", ", hic: true"])
def test_the_bytes_do_not_depend_on_batches(copy, more):
    # `hic` is for pairs.
    if "hic" in more:
        (copy / "units.tsv").write_text("sample\tunit\tfq1\tfq2\ns\ta.1\tp1.fq.gz\tp2.fq.gz\n"
                                        "t\tb\tq1.fq.gz\tq2.fq.gz\n")  # fmt: skip
    copy.snakemake(*settings(copy, 0, more), "--forcerun", "map_reads")
    expected = written(copy)
    said = copy.snakemake(*settings(copy, 300, more))
    assert written(copy) == expected
    counts = dict(re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE))
    assert 7 <= int(counts["map_part"]) <= 9
    statistics = json.loads(expected["s.stats.json"])
    assert statistics["reads"] > N_PAIRS
    left = [path.name for path in (copy / "results/map").rglob("*") if path.is_file()]
    assert sorted(left) == sorted(expected)
