"""The slurm profile on a Slurm cluster of two nodes, started for the test in its own folder."""

import re

import pytest

from tests.helpers.programs.slurm_nodes import Slurm, missing

# The first job fails like one without memory.
FAILS_ONCE = """\
import os
import sys
from pathlib import Path

from bwarp.cli.main import main

if not Path("failed").exists():
    Path("failed").touch()
    sys.exit("bwarp index: error: out of memory: give the job more memory, or use a smaller input")
print(os.environ["CUDA_VISIBLE_DEVICES"], file=sys.stderr)
main()
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Start Slurm with one node without and one with a GPU."""
    if reason := missing():
        pytest.skip(reason)
    with Slurm(tmp_path_factory.mktemp("slurm"), {"cpu": ["c1"], "gpu": ["g1"]}) as running:
        yield running


def test_a_failed_job_is_resubmitted_with_more_memory_and_a_gpu(slurm, make_copy):
    copy = make_copy("on_slurm")
    (copy / "bwarp/__main__.py").write_text(FAILS_ONCE)
    output = copy.snakemake(
        "index", "--config", "reference=small.fa", "--workflow-profile", "profiles/slurm",
        "--set-threads", "index_reference=2", "--slurm-status-command", "squeue",
        "--slurm-no-account", "--slurm-init-seconds-before-status-checks", 1,
        "--seconds-between-status-checks", 1, env=slurm.environment,
    )  # fmt: skip
    assert (copy / "results/index/small/index.json").is_file()
    log = (copy / "logs/index_reference/small.log").read_text()
    assert log.startswith("0\n")
    assert "indexing 20,000 bases of 2 contigs on cpu\n" in log
    jobs = re.findall(r"submitted with SLURM jobid (\d+)", output)
    wanted = [slurm.job(job) for job in jobs]
    assert [re.search(r"JobState=(\w+)", job)[1] for job in wanted] == ["FAILED", "COMPLETED"]
    memory = [int(re.search(r"MinMemoryNode=(\d+)M", job)[1]) for job in wanted]
    assert memory == [1500, 3000]
    for job in wanted:
        assert "Partition=gpu" in job
        assert "TRES=cpu=2," in job
        assert re.search(r"TresPerJob=gres:gpu:1|gres/gpu=1", job)
    # Resources that a rule does not request come from the profile, and also grow.
    plan = copy.snakemake(
        "pairs", "-n", "--attempt", 3, "--workflow-profile", "profiles/slurm",
        "--executor", "local", env=slurm.environment,
    )  # fmt: skip
    assert "mem_mb=12000" in plan
