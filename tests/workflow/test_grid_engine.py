"""The profile for Grid Engine on a cluster of one node, started for the test in its own folder."""

import re

import pytest

from tests.helpers.programs.grid_engine import GridEngine, missing
from tests.helpers.programs.programs_here import run_here

# The first job is killed, as a scheduler kills jobs: nothing tells Snakemake except the scheduler.
KILLED_ONCE = """\
import os
import signal
from pathlib import Path

from bwarp.cli.main import main

if not Path("killed").exists():
    Path("killed").touch()
    os.killpg(0, signal.SIGKILL)
main()
"""


@pytest.fixture(scope="module")
def grid_engine(tmp_path_factory):
    if reason := missing():
        pytest.skip(reason)
    with GridEngine(tmp_path_factory.mktemp("sge")) as running:
        yield running


def test_reads_are_mapped_in_parts(grid_engine, make_copy):
    """A killed job is resubmitted with more memory; the result is that of one job here."""
    copy = make_copy("on_grid_engine")
    reads = ("-1", copy / "r1.fq", "-2", copy / "r2.fq", "--pairs", 300)
    done = run_here("simulate_reads", "--reference", copy / "small.fa", *reads, folder=copy.folder)
    assert done.rc == 0, done.said
    (copy / "units.tsv").write_text("sample\tunit\tfq1\tfq2\ns\t1\tr1.fq\tr2.fq\n")
    (copy / "mine.yaml").write_text("reference: small.fa\nsamples: units.tsv\n")
    (copy / "parts.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nmap: {batch_reads: 320}\n"
    )
    copy.snakemake("map", "--configfile", "mine.yaml", "--config", "backend=cpu")
    expected = [(copy / f"results/map/s.{kind}").read_bytes() for kind in ("bam", "stats.json")]
    (copy / "bwarp/__main__.py").write_text(KILLED_ONCE)
    said = copy.snakemake(
        "map", "--configfile", "parts.yaml", "--forceall", "--workflow-profile", "profiles/sge",
        "--set-threads", "index_reference=2", "map_part=2", "cut_reads=1",
        "estimate_map_insert_size=1", "merge_alignments=1",
        "--seconds-between-status-checks", 1, "--latency-wait", 5, env=grid_engine.environment,
    )  # fmt: skip
    made = [(copy / f"results/map/s.{kind}").read_bytes() for kind in ("bam", "stats.json")]
    assert made == expected
    # The index twice, both steps of cutting in one job, two parts, and merging.
    jobs = re.findall(r"Submitted (?:group )?job \S+ with external jobid '(\d+)'", said)
    assert len(jobs) == 6
    records = [grid_engine.said("qacct", "-j", job) for job in jobs]
    ends = [int(re.search(r"^exit_status +(\d+)", record, re.MULTILINE)[1]) for record in records]
    assert ends == [137, 0, 0, 0, 0, 0]
    # mem_free, h_rt, gpu and slots of the first two.
    wanted = [re.search(r"^category +(.*)$", record, re.MULTILINE)[1] for record in records]
    assert "mem_free=1500M" in wanted[0]
    assert "mem_free=3000M" in wanted[1]
    assert all("gpu=1" in wanted[place] for place in (0, 1, 3, 4))
    assert "gpu=" not in wanted[5]
    assert "-pe smp 2" in wanted[0]
    assert "h_rt=7200" in wanted[1]
