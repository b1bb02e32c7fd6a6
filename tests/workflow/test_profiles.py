"""Every profile for other machines: plans with GPUs, times and groups, and what is submitted."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from tests.conftest import CHECKOUT
from tests.helpers.programs.programs_here import run_here

FOLDERS = sorted(path.parent.name for path in CHECKOUT.glob("profiles/*/profile.yaml"))

PROFILES = {
    name: yaml.safe_load((CHECKOUT / f"profiles/{name}/profile.yaml").read_text())
    for name in FOLDERS
}

#: The profiles that send jobs elsewhere.
ELSEWHERE = [name for name, profile in PROFILES.items() if "executor" in profile]

SHARED = ("retries", "show-failed-logs", "rerun-incomplete", "keep-going", "quiet", "jobs")

GENERIC = [name for name in ELSEWHERE if PROFILES[name]["executor"] == "cluster-generic"]

#: A scheduler that runs a job at once. The first job fails, as if it had been killed.
SUBMIT = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$JOBS/submitted"
for script; do :; done
n=$(wc -l < "$JOBS/submitted")
if [ "$n" -gt 1 ]; then sh "$script" > "$JOBS/$n.out" 2>&1; else false; fi
echo $? > "$JOBS/$n"
"""

#: What tells of a submitted job, and of its end, in the words of each scheduler.
SCHEDULERS = {
    "pbs": {
        "qsub": SUBMIT + 'echo "$n.server"\n',
        "qstat": '#!/bin/sh\n[ "$1" = -xf ] || exit 1\n'
        'printf "Job Id: $2\\n    job_state = F\\n    Exit_status = $(cat "$JOBS/${2%%.*}")\\n"\n',
    },
    "lsf": {
        "bsub": SUBMIT + 'echo "Job <$n> is submitted to default queue <normal>."\n',
        "bjobs": '#!/bin/sh\n[ "$1 $2 $3" = "-noheader -o stat" ] || exit 1\n'
        'if [ "$(cat "$JOBS/$4")" = 0 ]; then echo DONE; else echo EXIT; fi\n',
    },
}

#: For each scheduler, what the program for the states of jobs says: of a job that ended well, one
#: that failed, one that waits, one that is unknown, and if the scheduler does not answer.
STATES = {
    "sge": {
        "success": ("qacct", "failed 0\\nexit_status 0", 0),
        "failed": ("qacct", "failed 0\\nexit_status 137", 0),
        "running": ("qstat", "job_number: 7", 0),
        "unknown": ("qstat", "Following jobs do not exist:\\n7", 1),
        "silent": ("qstat", "failed receiving gdi request", 1),
    },
    "lsf": {
        "success": ("bjobs", "DONE", 0),
        "failed": ("bjobs", "EXIT", 0),
        "running": ("bjobs", "PEND", 0),
        "unknown": ("bjobs", "Job <7> is not found", 255),
        "silent": ("bjobs", "Failed in an LSF library call: LIM is down", 255),
    },
    "pbs": {
        "success": ("qstat", "Job Id: 7\\n job_state = F\\n Exit_status = 0", 0),
        "failed": ("qstat", "Job Id: 7\\n job_state = F\\n Exit_status = 271", 0),
        "running": ("qstat", "Job Id: 7\\n job_state = Q", 0),
        "unknown": ("qstat", "qstat: Unknown Job Id 7.server", 153),
        "silent": ("qstat", "Connection refused\\nqstat: cannot connect to server", 255),
    },
}

#: The requests of the first and second job for the index.
REQUESTS = {
    "pbs": [
        f"-l select=1:ncpus=2:mem={memory}mb:ngpus=1 -l walltime={minutes * 60} "
        for memory, minutes in ((1500, 60), (3000, 120))
    ],
    "lsf": [
        f"-n 2 -M {memory}MB -W {minutes} -o .snakemake/%J.out "
        f"-R span[hosts=1] rusage[mem={memory}MB] -gpu num=1 "
        for memory, minutes in ((1500, 60), (3000, 120))
    ],
}


def plugin_of(name):
    return f"snakemake_executor_plugin_{PROFILES[name]['executor'].replace('-', '_')}"


def needs_plugin(name):
    return pytest.param(
        name, marks=pytest.mark.skipif(not find_spec(plugin_of(name)), reason=plugin_of(name))
    )


def resources_of(plan):
    """Return the resources of each rule in a dry run."""
    found = re.findall(r"^ *rule (\w+):\n(?: .*\n)*? +resources: (.*)$", plan, re.MULTILINE)
    return {rule: set(resources.split(", ")) for rule, resources in found}


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy with a unit of pairs that is mapped in parts."""
    copy = make_copy("clone", forks=True)
    reads = ("-1", copy / "r1.fq", "-2", copy / "r2.fq", "--pairs", 100)
    done = run_here("simulate_reads", "--reference", copy / "small.fa", *reads, folder=copy.folder)
    assert done.rc == 0, done.said
    (copy / "units.tsv").write_text("sample\tunit\tfq1\tfq2\ns\t1\tr1.fq\tr2.fq\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nmap: {batch_reads: 120}\n"
    )
    return copy


def test_they_agree_with_the_profile_for_slurm():
    for name in {*ELSEWHERE} - {"slurm"}:
        for key in (
            "retries",
            "show-failed-logs",
            "rerun-incomplete",
            "keep-going",
            "quiet",
            "jobs",
        ):
            assert PROFILES[name][key] == PROFILES["slurm"][key]
        if "default-storage-provider" not in PROFILES[name]:
            assert PROFILES[name]["groups"] == PROFILES["slurm"]["groups"]
    for name in GENERIC:
        shared = PROFILES["slurm"]["default-resources"]
        assert PROFILES[name]["default-resources"] == {"gpu": 0, **shared}


def test_pages_name_every_profile(checkout):
    page = (checkout / "docs/gpu-and-cluster.md").read_text()
    for name in FOLDERS:
        assert f"profiles/{name}" in page or name == "default"


@pytest.mark.parametrize("name", map(needs_plugin, ["slurm", *GENERIC]))
def test_a_plan(copy, name):
    """Jobs request GPUs and time, and short steps are one job."""
    own = ("--configfile", "mine.yaml", "--workflow-profile", f"profiles/{name}")
    resources = resources_of(copy.snakemake("map", "-n", *own))
    for rule in ("index_reference", "map_part"):
        assert {"gpu=1", "runtime=60"} <= resources[rule]
    assert "gpu=1" not in resources["merge_alignments"]
    resources = resources_of(copy.snakemake("map", "-n", *own, "--config", "backend=cpu"))
    assert "gpu=1" not in resources["map_part"]


@pytest.mark.parametrize("name", [needs_plugin("aws-batch")])
@pytest.mark.skipif(not find_spec("snakemake_storage_plugin_fs"), reason="needs the storage fs")
def test_a_plan_for_aws_batch(copy, name, tmp_path):
    """Its plugin reads resources of its own."""
    for path in ("small.fa", "r1.fq", "r2.fq"):
        (tmp_path / path).write_bytes((copy / path).read_bytes())
    resources = resources_of(
        copy.snakemake(
            "map", "-n", "--configfile", "mine.yaml", "--workflow-profile", f"profiles/{name}",
            "--default-storage-prefix", tmp_path,
        )
    )  # fmt: skip
    for rule in ("index_reference", "map_part"):
        assert {"aws_batch_gpu=1", "aws_batch_task_timeout=43200"} <= resources[rule]
    assert "aws_batch_gpu=1" not in resources["merge_alignments"]
    # Every rule that requests a GPU is listed in the profile.
    found = set()
    for path in CHECKOUT.glob("workflow/rules/*.smk"):
        for rule in re.split(r"^rule ", path.read_text(), flags=re.MULTILINE)[1:]:
            if re.search(r"^        gpu=", rule, re.MULTILINE):
                found.add(rule.partition(":")[0])
    assert set(PROFILES[name]["set-resources"]) == found | {"map_part"}


@pytest.mark.parametrize("name", map(needs_plugin, SCHEDULERS))
def test_what_is_submitted(copy, name, tmp_path):
    """A scheduler that stands in for the real one gets its options; a failed job is resubmitted."""
    for program, text in SCHEDULERS[name].items():
        Path(tmp_path, program).write_text(text)
        Path(tmp_path, program).chmod(0o755)
    path = f"{tmp_path}:{copy.environment.get('PATH', '/usr/local/bin:/usr/bin:/bin')}"
    copy.snakemake(
        "index", "--configfile", "mine.yaml", "--workflow-profile", f"profiles/{name}",
        "--set-threads", "index_reference=2", "--forceall", "--latency-wait", 1,
        "--seconds-between-status-checks", 1,
        env={"PATH": path, "JOBS": str(tmp_path)},
    )  # fmt: skip
    submitted = (tmp_path / "submitted").read_text().splitlines()
    assert len(submitted) == 2
    for words, requests in zip(submitted, REQUESTS[name], strict=True):
        assert requests in words
    assert (copy / "results/index/small/index.json").is_file()


@pytest.mark.parametrize("name", STATES)
def test_the_state_of_a_job(name, tmp_path):
    """A job that its scheduler has forgotten fails in the end; a silent scheduler is waited for."""
    (tmp_path / ".snakemake").mkdir()
    command = PROFILES[name]["cluster-generic-status-cmd"]

    def state(program, text, code, times=1):
        """Return the distinct answers for a job, in order; other programs fail."""
        for other in {program for program, *_ in STATES[name].values()}:
            (tmp_path / other).write_text("#!/bin/sh\nexit 1\n")
            (tmp_path / other).chmod(0o755)
        to = 1 if code == 0 else 2
        (tmp_path / program).write_text(f"#!/bin/sh\nprintf '{text}\\n' >&{to}\nexit {code}\n")
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
        lines = f"i=0; while [ $((i += 1)) -le {times} ]; do {command} '7.server'; done"
        done = subprocess.run(
            ["sh", "-c", lines],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert not done.stderr
        return done.stdout.split()

    said = STATES[name]
    for expected in ("success", "failed", "running"):
        assert state(*said[expected]) == [expected]
    assert state(*said["silent"], times=40) == ["running"] * 40
    assert state(*said["unknown"], times=30) == ["running"] * 29 + ["failed"]
    assert state(*said["success"]) == ["success"]
