"""With --sdm conda, only jobs that have a GPU get the packages for CUDA."""

import re
from pathlib import Path

import pytest

EVERYTHING = (
    "all",
    "seeds",
    "offtargets",
    "guides",
    "primers",
    "mems",
    "scan",
    "pairs",
    "search",
    "--forceall",
)
ON_GPU = {
    "index_reference", "add_reverse", "map_reads", "find_seeds", "find_offtargets", "find_products",
    "design_guides", "find_mems", "scan_composition", "align_pairs", "search_database",
}  # fmt: skip
ON_CPU = {
    "simulate_genome", "simulate_reads", "merge_alignments", "count_correct", "preview_table",
    "report_offtargets",
}  # fmt: skip
REPORTS = {"multiqc", "report"}
SLURM = ("--workflow-profile", "profiles/slurm", "--executor", "local")


@pytest.fixture(scope="module")
def copy(make_copy):
    return make_copy()


def planned(copy, gpu_here, *words):
    """Return the conda environments for the jobs of a rule, and their GPUs."""
    program = Path(__file__).with_name("plan_environments.py")
    rc, said, _ = copy.server.run([program, gpu_here, *words], cwd=copy.folder, merged=True)
    assert rc == 0, said
    jobs = re.findall(r"^(\w+): envs/(\w+)\.yaml gpu=(\d)$", said, re.MULTILINE)
    return {rule: (environment, int(gpu)) for rule, environment, gpu in jobs}


@pytest.mark.parametrize(
    ("gpu_here", "words", "expected"),
    [
        ("no", (), ("cpu", 0)),
        ("yes", (), ("gpu", 1)),
        ("yes", ("--config", "backend=cpu"), ("cpu", 0)),
        ("no", ("--config", "backend=cuda"), ("gpu", 1)),
        ("no", ("--workflow-profile", "profiles/gpu"), ("gpu", 1)),
        # Jobs on other machines request a GPU, even if this one has none.
        ("no", SLURM, ("gpu", 1)),
        ("yes", (*SLURM, "--config", "backend=cpu"), ("cpu", 0)),
    ],
)
def test_the_environment_of_each_job(copy, gpu_here, words, expected):
    jobs = planned(copy, gpu_here, *EVERYTHING, *words)
    assert jobs == {
        **dict.fromkeys(ON_GPU, expected),
        **dict.fromkeys(ON_CPU, ("cpu", 0)),
        **dict.fromkeys(REPORTS, ("report", 0)),
    }


def test_a_job_whose_gpu_is_taken_away_needs_no_parts_for_cuda(copy):
    taken = ("--set-resources", "find_mems:gpu=0")
    jobs = planned(copy, "no", *EVERYTHING, *SLURM, *taken)
    assert jobs["find_mems"] == ("cpu", 0)
    assert jobs["find_seeds"] == ("gpu", 1)
    # A GPU is required; the cluster may assign it under another name, so the packages are needed.
    jobs = planned(copy, "no", *EVERYTHING, *SLURM, *taken, "--config", "backend=cuda")
    assert jobs["find_mems"] == ("gpu", 0)


def test_a_submitted_job_keeps_its_environment(copy):
    sent = ("map", "--forceall", "--mode", "subprocess")
    assert planned(copy, "no", *sent)["map_reads"] == ("gpu", 1)
