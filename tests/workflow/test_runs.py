"""Results of a run of the workflow, repeated runs, and runs after a kill."""

import os
import re
import signal
import subprocess
import time

import pytest

from bwarp.runtime.backend import may_have_gpu
from tests.helpers.cases.small_genome import write_genome

SMALL = ("--config", "reference=small.fa")


@pytest.fixture(scope="module")
def built(make_copy):
    """Make a copy with the index of the small genome; return it and the messages."""
    copy = make_copy()
    copy.said = copy.snakemake("index", *SMALL)
    return copy


def test_the_index_is_built_and_the_run_says_where(built):
    assert (built / "results/index/small/index.json").is_file()
    assert "contigs 2   bases 20,000" in (built / "results/index/small.txt").read_text()
    assert "results/index/small  " in built.said
    assert "the index of small.fa" in built.said


def test_jobs_take_turns_at_the_gpu_only_with_a_driver(built):
    assert f"gpu={int(may_have_gpu())}, " in built.said
    planned = built.snakemake("index", "-n", "--forceall", *SMALL, "backend=cuda")
    assert "gpu=1, " in planned
    assert "gpu=0, " in built.snakemake("index", "-n", "--forceall", *SMALL, "backend=cpu")


def test_a_job_that_is_given_several_gpus_uses_them(built):
    given = ("--resources", "gpu=4", "--set-resources", "find_mems:gpu=4")
    words = ("mems", "-n", "-p", "--forceall", *given, *SMALL, "backend=cuda")
    (command,) = re.findall(r"bwarp mems .*", built.snakemake(*words))
    assert "--backend cuda --gpus 4 2> logs/find_mems.log" in command
    (command,) = re.findall(r"bwarp mems .*", built.snakemake("mems", "-n", "-p", *SMALL))
    assert "--gpus" not in command


def test_the_log_contains_the_messages_of_the_program(built):
    log = (built / "logs/index_reference/small.log").read_text()
    assert "indexing 20,000 bases of 2 contigs on " in log


def test_nothing_is_left_to_do(built):
    said = built.snakemake("index", *SMALL)
    assert "Nothing to be done" in said


def test_another_backend_reruns_nothing(built):
    assert built.planned("index", *SMALL, "backend=cuda") == []


def test_another_parameter_reruns_the_index(built):
    (built / "mine.yaml").write_text("reference: small.fa\nindex:\n  occ_rate: 128\n")
    assert built.planned("index", "--configfile", "mine.yaml") == ["resample_index"]


@pytest.mark.parametrize(
    ("edited", "planned"),
    [
        ("bwarp/index/store.py", ["index_reference"]),
        ("bwarp/simulation/genome.py", []),
    ],
)
def test_edited_code_reruns_jobs_that_use_it(built, edited, planned):
    source = built / edited
    text = source.read_text()
    source.write_text(text + "# edited\n")
    try:
        assert built.planned("index", *SMALL) == planned
    finally:
        source.write_text(text)


def test_a_moved_checkout_reruns_nothing(built):
    built.folder = built.folder.rename(built.folder.with_name("moved"))
    assert "Nothing to be done" in built.snakemake("index", *SMALL)


def test_results_may_lie_in_another_folder(built, tmp_path):
    write_genome(tmp_path / "other.fa", 5_000)
    (tmp_path / "mine.yaml").write_text("reference: other.fa\n")
    options = ("--snakefile", built / "Snakefile", "--configfile", "mine.yaml")
    built.snakemake("index", *options, cwd=tmp_path)
    assert (tmp_path / "results/index/other/index.json").is_file()


def test_a_failed_job_ends_its_log_with_the_reason(built):
    (built / "bad.fa").write_text(">protein\nMKLV\n")
    said = built.snakemake("index", "--config", "reference=bad.fa", rc=1)
    last = (built / "logs/index_reference/bad.log").read_text().splitlines()[-1]
    assert last.startswith("bwarp index: error: bad.fa")
    assert last in said
    assert "Traceback" not in said
    assert not (built / "results/index/bad").exists()
    assert not (built / "results/index/bad.txt").exists()


def test_a_killed_build_is_repaired_by_the_next_run(make_copy):
    copy = make_copy("killed")
    write_genome(copy / "big.fa", 2_000_000)
    options = ("index", "--config", "reference=big.fa")
    process = subprocess.Popen(
        copy.command(*options),
        cwd=copy.folder,
        start_new_session=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = copy / "logs/index_reference/big.log"
    deadline = time.monotonic() + 120
    while not (log.is_file() and "indexing" in log.read_text()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (copy / "results/index/big").exists()
    # Messages of a second run in the same folder, during the first or after it was killed.
    said = copy.snakemake(*options, rc=1)
    assert "Directory cannot be locked." in said
    assert "--unlock" in said
    assert "Traceback" not in said
    copy.snakemake("--unlock", *options)
    copy.snakemake(*options)
    folder = copy / "results/index"
    assert sorted(path.name for path in folder.iterdir()) == ["big", "big.txt"]
    assert (folder / "big/index.json").is_file()
