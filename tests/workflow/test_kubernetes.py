"""The profile for Kubernetes, and its plans with inputs and results on a volume."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.helpers.programs.programs_here import run_here

STORED = ("--workflow-profile", "profiles/kubernetes", "--default-storage-prefix")

N_READS = 400

#: The folder of the substitute for Kubernetes.
PODS = Path(__file__).parents[1] / "helpers" / "pods"


def lacks(*modules):
    """Return a mark for tests that need plugins of Snakemake."""
    missing = [name for name in modules if not find_spec(name)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


@pytest.fixture(scope="module")
def profile(checkout):
    return yaml.safe_load((checkout / "profiles/kubernetes/profile.yaml").read_text())


def test_a_gpu_has_a_maker_and_a_limit(profile):
    """Without these, Snakemake's plugin or Kubernetes assigns no GPU to a job."""
    assert profile["default-resources"]["gpu_manufacturer"] == "'nvidia'"
    assert profile["default-resources"]["scale"] == 0


def test_it_agrees_with_the_profile_for_slurm(checkout, profile):
    slurm = yaml.safe_load((checkout / "profiles/slurm/profile.yaml").read_text())
    shared = ("retries", "show-failed-logs", "rerun-incomplete", "keep-going", "quiet", "jobs")
    assert {key: profile[key] for key in shared} == {key: slurm[key] for key in shared}


def test_the_image_is_that_of_the_recipe_and_has_what_the_storage_calls(checkout, profile):
    recipe = (checkout / "envs/Dockerfile").read_text()
    assert profile["default-storage-provider"] == "fs"
    assert "rsync" in recipe
    (volume,) = profile["kubernetes-persistent-volumes"]
    mounted = volume.partition(":")[2]
    assert profile["default-storage-prefix"].startswith(f"{mounted}/")
    assert f"XDG_CACHE_HOME={mounted}/" in recipe


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy whose genome and reads are in another folder: the storage."""
    copy = make_copy()
    volume = copy.folder.parent / "volume"
    volume.mkdir()
    (copy / "small.fa").rename(volume / "small.fa")
    reads = ("--reference", volume / "small.fa", "-1", volume / "r1.fq", "--reads", N_READS)
    assert run_here("simulate_reads", *reads, folder=volume).rc == 0
    (copy / "units.tsv").write_text("sample\tfq1\ns\tr1.fq\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nbackend: cpu\n"
        f"map: {{batch_reads: {N_READS // 2 - 20}}}\n"
        "seeds: {queries: r1.fq, k: 20, mismatches: 1, parts: 2}\n"
    )
    copy.volume = volume
    return copy


@lacks("snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_fs")
def test_a_plan_with_files_of_a_volume(copy):
    words = ("map", "seeds", "-n", "--configfile", "mine.yaml", *STORED, copy.volume)
    said = copy.snakemake(*words)
    counts = dict(re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE))
    assert (counts["map_part"], counts["find_seeds"]) == ("3", "2")
    # The index has its reverse BWT from the start.
    assert "add_reverse" not in counts
    assert "gpu_manufacturer=nvidia" in said
    # Based on the size of the genome there; if it were not found, 50 more.
    (memory,) = set(re.findall(r"rule map_part:.*?mem_mb=(\d+)", said, re.DOTALL))
    assert (int(memory) - 4000) % 512 == 0


@lacks("snakemake_executor_plugin_kubernetes", "snakemake_storage_plugin_fs")
def test_an_input_that_the_volume_lacks(copy):
    words = ("map", "-n", "--configfile", "mine.yaml", *STORED, copy.volume / "other")
    assert "small.fa" in copy.snakemake(*words, rc=1)


@lacks("snakemake_storage_plugin_fs")
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
def test_allmap_where_jobs_share_a_storage_alone(make_copy, tmp_path):
    """Jobs in empty folders write the same bytes as jobs in a common folder."""
    copy, volume = make_copy("clone", forks=True), tmp_path / "volume"
    genome = ("--reference", copy / "small.fa")
    for number in (1, 2):
        reads = (*genome, "-1", copy / f"r{number}.fq", "--reads", 150, "--seed", number)
        assert run_here("simulate_reads", *reads, folder=copy.folder).rc == 0
    (copy / "units.tsv").write_text("sample\tunit\tfq1\ns\t1\tr1.fq\ns\t2\tr2.fq\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nbackend: cpu\nallmap: {edits: 2}\n"
    )
    shutil.copytree(copy.folder, tmp_path / "sent")
    volume.mkdir()
    for name in ("small.fa", "r1.fq", "r2.fq"):
        (tmp_path / "sent" / name).rename(volume / name)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "sent", check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path / "sent", check=True)
    (tmp_path / "pods").mkdir()
    path = os.pathsep.join([str(PODS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            sys.executable, "-m", "snakemake", "allmap", "--configfile", "mine.yaml",
            "--executor", "pods", "--jobs", "2", "--seconds-between-status-checks", "1",
            "--default-storage-provider", "fs", "--default-storage-prefix", str(volume),
        ],
        cwd=tmp_path / "sent",
        env=os.environ | {"PODS": str(tmp_path / "pods"), "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    copy.snakemake("allmap", "--configfile", "mine.yaml")
    for ending in ("bam", "bam.bai", "over.tsv", "skipped.tsv", "stats.json"):
        made = (volume / "results" / "allmap" / f"s.{ending}").read_bytes()
        assert made == (copy / "results" / "allmap" / f"s.{ending}").read_bytes()


@lacks("snakemake_storage_plugin_fs")
@pytest.mark.skipif(not shutil.which("rsync"), reason="needs rsync")
@pytest.mark.parametrize("prefix", [None, "storage"])
def test_a_storage_in_the_working_directory(make_copy, prefix):
    """As where jobs work on the disk of their node; the prefix may be part of other paths."""
    copy = make_copy("clone", forks=True)
    reads = ("--reference", copy / "small.fa", "-1", copy / "r1.fq", "--reads", 50)
    assert run_here("simulate_reads", *reads, folder=copy.folder).rc == 0
    (copy / "units.tsv").write_text("sample\tfq1\ns\tr1.fq\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nbackend: cpu\nallmap: {edits: 2}\n"
    )
    words = ["--default-storage-provider", "fs"]
    if prefix:
        (copy / prefix).mkdir()
        for name in ("small.fa", "r1.fq"):
            (copy / name).rename(copy / prefix / name)
        words += ["--default-storage-prefix", prefix]
    copy.snakemake("allmap", "--configfile", "mine.yaml", *words)
    assert (copy / (prefix or "") / "results/allmap/s.bam").is_file()
