"""The slurm profile on a Slurm cluster while jobs and nodes are killed: nothing is lost.

BWARP_KILLS=20 kills this many jobs and nodes at random; it takes a few minutes.
"""

import json
import os
import random
import re
import subprocess
import sys
import threading
import time

import pytest

from tests.helpers.programs.programs_here import run_here
from tests.helpers.programs.slurm_nodes import Slurm, missing

KILLS = int(os.environ.get("BWARP_KILLS", "3"))

PARTITIONS = {"cpu": ["c1", "c2", "c3"], "gpu": ["g1", "g2"]}

N_PAIRS = 1500

#: Writes to runs.txt which part a job maps, and when it is done; then waits.
RECORDED = """\
import os
import subprocess
import sys
import time
from pathlib import Path

from bwarp.cli.main import main

words = sys.argv[1:]
if words[0] != "map":
    sys.exit(main())
part = words[words.index("--part") + 1] if "--part" in words else "all"
job, node = os.environ["SLURM_JOB_ID"], os.environ["SLURMD_NODENAME"]


def record(what):
    with open("runs.txt", "a") as file:
        file.write(f"{what} {words[words.index('-o') + 1]} {job} {node}\\n")


record("begun")
time.sleep(float(Path("pause.txt").read_text()))
if Path("full.txt").exists() and part.startswith("2/"):
    Path("full.txt").unlink()
    sys.exit("bwarp map: error: out.bam: no space is left on the device")
real_one = ["-P", "-c", "from bwarp.cli.main import main; main()"]
code = subprocess.run([sys.executable, *real_one, *words]).returncode
if code == 0:
    record("done")
sys.exit(code)
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """Start Slurm with three nodes without and two with a GPU."""
    if reason := missing():
        pytest.skip(reason)
    with Slurm(tmp_path_factory.mktemp("slurm"), PARTITIONS) as running:
        yield running


@pytest.fixture(scope="module")
def copy(make_copy, slurm):
    """Make a copy with an index, reads of one unit, and the result of one job."""
    copy = make_copy("on_slurm")
    reads = ("-1", copy / "r1.fq", "-2", copy / "r2.fq", "--pairs", N_PAIRS)
    done = run_here("simulate_reads", "--reference", copy / "small.fa", *reads, folder=copy.folder)
    assert done.rc == 0, done.said
    (copy / "units.tsv").write_text("sample\tunit\tfq1\tfq2\ns\t1\tr1.fq\tr2.fq\n")
    (copy / "one.yaml").write_text("reference: small.fa\nsamples: units.tsv\nbackend: cpu\n")
    copy.snakemake("map", "--configfile", "one.yaml")
    copy.expected = written(copy)
    (copy / "bwarp/__main__.py").write_text(RECORDED)
    return copy


def written(copy):
    endings = ("bam", "bam.bai", "stats.json")
    return [(copy / f"results/map/s.{ending}").read_bytes() for ending in endings]


def begin(copy, slurm, backend="cpu", parts=4, folder=None):
    """Start a run of the workflow in parts, in its own or another folder; return the process."""
    folder = folder or copy.folder
    (folder / "pause.txt").write_text("0")
    settings = {
        "reference": "small.fa", "samples": "units.tsv", "backend": backend,
        "map": {"batch_reads": 2 * N_PAIRS // parts + 40},
    }  # fmt: skip
    (folder / "parts.yaml").write_text(json.dumps(settings))
    words = copy.command(
        "map", "--snakefile", copy / "Snakefile", "--configfile", "parts.yaml",
        "--workflow-profile", copy / "profiles/slurm",
        "--set-threads", "map_part=1", "cut_reads=1", "estimate_map_insert_size=1",
        "merge_alignments=1", "--default-resources", "mem_mb=1000", "runtime=5",
        "--set-resources", "map_part:mem_mb=500", "estimate_map_insert_size:mem_mb=500",
        "--slurm-status-command", "squeue", "--slurm-no-account",
        "--slurm-init-seconds-before-status-checks", 1, "--seconds-between-status-checks", 1,
        "--latency-wait", 5,
    )  # fmt: skip
    return subprocess.Popen(
        words, cwd=folder, env=os.environ | slurm.environment, stdin=subprocess.DEVNULL,
        stdout=open(folder / "said.txt", "w"), stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def ended(copy, process, timeout=250) -> str:
    """Wait for a run, which must succeed; return its output."""
    code = process.wait(timeout)
    said = (copy / "said.txt").read_text()
    assert code == 0, said
    return said


def fresh(copy):
    """Remove earlier results of mapping."""
    for path in (copy / "results/map").glob("s.*"):
        path.unlink()
    (copy / "runs.txt").write_text("")


def runs(copy, what):
    lines = (copy / "runs.txt").read_text().splitlines()
    return [line.split()[1:] for line in lines if line.startswith(what)]


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.2)


def check(copy, n_parts, killed=()):
    """Check the bytes, and that only parts of killed jobs were done twice."""
    assert written(copy) == copy.expected
    done = runs(copy, "done")
    assert len({path for path, *_ in done}) == n_parts
    by_others = [path for path, job, _ in done if job not in killed]
    assert len(by_others) == len(set(by_others))
    assert not list((copy / "results/map").rglob("*-of-*"))


def test_jobs_go_where_they_can_run(copy, slurm):
    """Without a GPU, jobs run on nodes without GPUs; otherwise, jobs that can use one get it."""
    for backend in ("cpu", "auto"):
        fresh(copy)
        said = ended(copy, begin(copy, slurm, backend))
        check(copy, 4)
        jobs = re.findall(r"submitted with SLURM jobid (\d+)", said)
        assert jobs
        nodes = {node for _, _, node in runs(copy, "done")}
        assert nodes <= set(PARTITIONS["cpu" if backend == "cpu" else "gpu"])
        names = [slurm.job(job) for job in jobs]
        partitions = [re.search(r"Partition=(\w+)", name)[1] for name in names]
        # One job cuts and estimates, four map, and one merges.
        assert sorted(partitions) == (
            ["cpu"] * 6 if backend == "cpu" else ["cpu"] * 2 + ["gpu"] * 4
        )


def test_a_node_that_dies_loses_one_part(copy, slurm):
    fresh(copy)
    process = begin(copy, slurm)
    (copy / "pause.txt").write_text("8")
    wait_for(lambda: runs(copy, "begun"))
    _, _, node = runs(copy, "begun")[0]
    killed = slurm.kill_node(node)
    (copy / "pause.txt").write_text("0")
    time.sleep(15)
    slurm.start_node(node)
    ended(copy, process)
    check(copy, 4, killed)


def test_a_full_disk_in_one_part(copy, slurm):
    fresh(copy)
    (copy / "full.txt").write_text("")
    ended(copy, begin(copy, slurm))
    check(copy, 4)
    assert len(runs(copy, "begun")) == 5


def test_the_controller_is_started_again(copy, slurm):
    fresh(copy)
    process = begin(copy, slurm)
    (copy / "pause.txt").write_text("5")
    wait_for(lambda: runs(copy, "begun"))
    slurm.restart_controller()
    ended(copy, process)
    check(copy, 4)


def test_two_workflows_on_one_index(copy, slurm):
    """Two runs in separate folders at the same time."""
    folders = [copy / "first", copy / "second"]
    for folder in folders:
        (folder / "results").mkdir(parents=True)
        (folder / "results/index").symlink_to(copy / "results/index")
        for name in ("small.fa", "units.tsv", "r1.fq", "r2.fq"):
            # For a link, Snakemake also checks the time of the link itself.
            (folder / name).hardlink_to(copy / name)
    before = sorted(path.stat().st_mtime_ns for path in (copy / "results/index/small").iterdir())
    processes = [begin(copy, slurm, parts=2, folder=folder) for folder in folders]
    for process, folder in zip(processes, folders, strict=True):
        assert process.wait(280) == 0, (folder / "said.txt").read_text()
        for name, content in zip(("bam", "bam.bai", "stats.json"), copy.expected, strict=True):
            assert (folder / f"results/map/s.{name}").read_bytes() == content
    after = sorted(path.stat().st_mtime_ns for path in (copy / "results/index/small").iterdir())
    assert after == before


def test_random_kills(copy, slurm):
    """Jobs and nodes are killed at random, and the run is restarted if it gives up."""
    fresh(copy)
    rng = random.Random(KILLS)
    killed, jobs, over = [], [], threading.Event()

    def kill():
        while len(killed) < KILLS and not over.wait(rng.uniform(0.5, 3)):
            lines = slurm.said("squeue", "-h", "-t", "R", "-o", "%A %N").split("\n")
            mapping = {job for _, job, _ in runs(copy, "begun")}
            running = [
                line.split() for line in lines if line.split()[:1] and line.split()[0] in mapping
            ]
            if not running:
                continue
            job, node = rng.choice(running)
            killed.append(f"{job} on {node}")
            if rng.random() < 0.15:
                jobs.extend(slurm.kill_node(node))
                time.sleep(1)
                slurm.start_node(node)
            else:
                jobs.append(job)
                slurm.kill_processes(job)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        # More parts than kills, so that there is always a job to kill.
        for _ in range(2 + KILLS):
            process = begin(copy, slurm, parts=8)
            (copy / "pause.txt").write_text("3")
            if process.wait(280) == 0:
                break
            subprocess.run(
                [sys.executable, "-m", "snakemake", "--unlock", "map"], cwd=copy.folder, check=False
            )
    finally:
        over.set()
        thread.join()
    print(f"{len(killed)} killed: {', '.join(killed)}; {len(runs(copy, 'begun'))} parts begun")
    assert killed
    check(copy, 8, jobs)
