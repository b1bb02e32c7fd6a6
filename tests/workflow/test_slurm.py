"""The slurm profile on a Slurm of one node, started for the test in a folder of its own.

The node has a GPU that is only a file. Whatever Slurm the machine belongs to is not touched.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")

SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MinJobAge=300
SchedulerParameters=sched_interval=1
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=8000 Gres=gpu:1 State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

# The first job of a rule fails as one without memory does.
FAILS_ONCE = """\
import os
import sys
from pathlib import Path

if not Path("failed").exists():
    Path("failed").touch()
    sys.exit("index_reference.py: error: out of memory: give the job more, or a smaller input")
print(os.environ["CUDA_VISIBLE_DEVICES"], file=sys.stderr)
os.execv(sys.executable, [sys.executable, "scripts/the_real_one.py", *sys.argv[1:]])
"""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A running Slurm; yields what the environment needs to use it."""
    missing = [name for name in NEEDED if not shutil.which(name)]
    if missing or not find_spec("snakemake_executor_plugin_slurm"):
        pytest.skip(
            f"needs Slurm and Snakemake's plugin for it: no {', '.join(missing) or 'plugin'}"
        )
    if os.getuid() != 0:
        pytest.skip("needs to be root: slurmd starts jobs as other users")
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("spool", "state", "bin"):
        (folder / name).mkdir()
    host = socket.gethostname().partition(".")[0]
    (folder / "slurm.conf").write_text(
        SLURM_CONF.format(
            folder=folder, host=host, ports=free_ports(2), user="root", cpus=os.cpu_count()
        )
    )
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu File=/dev/null\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
    (folder / "munge.key").write_bytes(os.urandom(64))
    (folder / "munge.key").chmod(0o400)
    # Jobs are sent without the variables of Slurm, and what starts their steps looks in /etc.
    srun = folder / "bin/srun"
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    environment = {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
    }
    options = {
        "key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid",
        "log-file": "munged.log", "seed-file": "munge.seed",
    }  # fmt: skip
    try:
        start("munged", "--force", *(f"--{name}={folder / file}" for name, file in options.items()))
        for daemon in ("slurmctld", "slurmd"):
            start(daemon, environment=environment)
        deadline = time.monotonic() + 60
        while "idle" not in said("sinfo", "-h", "-o", "%T", environment=environment):
            assert time.monotonic() < deadline, (folder / "slurmctld.log").read_text()
            time.sleep(0.2)
        yield environment
    finally:
        for daemon in ("slurmd", "slurmctld", "munged"):
            stop(folder / f"{daemon}.pid")


def start(*command, environment=None):
    subprocess.run(
        command,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


def said(*command, environment) -> str:
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return done.stdout


def stop(pid_file: Path):
    if pid_file.exists():
        os.kill(int(pid_file.read_text()), 15)


def test_a_job_that_fails_is_sent_again_with_more_memory_and_a_gpu(slurm, make_copy):
    copy = make_copy("on_slurm")
    (copy / "scripts/index_reference.py").rename(copy / "scripts/the_real_one.py")
    (copy / "scripts/index_reference.py").write_text(FAILS_ONCE)
    output = copy.snakemake(
        "index", "--config", "reference=small.fa", "--workflow-profile", "profiles/slurm",
        "--set-threads", "index_reference=2", "--slurm-status-command", "squeue",
        "--slurm-no-account", "--slurm-init-seconds-before-status-checks", 1,
        "--seconds-between-status-checks", 1, env=slurm,
    )  # fmt: skip
    assert (copy / "results/index/small/index.json").is_file()
    log = (copy / "logs/index_reference/small.log").read_text()
    assert log.startswith("0\n")
    assert "indexing 20,000 bases of 2 contigs on cpu\n" in log
    jobs = re.findall(r"submitted with SLURM jobid (\d+)", output)
    wanted = [said("scontrol", "show", "job", job, environment=slurm) for job in jobs]
    assert [re.search(r"JobState=(\w+)", job)[1] for job in wanted] == ["FAILED", "COMPLETED"]
    memory = [int(re.search(r"MinMemoryNode=(\d+)M", job)[1]) for job in wanted]
    assert memory == [1000, 2000]
    for job in wanted:
        assert "Partition=gpu" in job
        assert "TRES=cpu=2," in job
        assert re.search(r"TresPerJob=gres:gpu:1|gres/gpu=1", job)
    # What a rule does not ask for itself is asked for by the profile, and grows too.
    plan = copy.snakemake(
        "pairs", "-n", "--attempt", 3, "--workflow-profile", "profiles/slurm",
        "--executor", "local", env=slurm,
    )  # fmt: skip
    assert "mem_mb=12000" in plan
