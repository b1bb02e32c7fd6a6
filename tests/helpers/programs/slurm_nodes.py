"""A Slurm cluster of several nodes on this machine, in its own folder, for tests of the profile.

Each node is a slurmd with a name and a port; some have a GPU that is simulated by a file. A Slurm
cluster that the machine belongs to is not affected.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import psutil

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue")

PROFILE = Path(__file__).resolve().parents[3] / "profiles/slurm"

CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdSpoolDir={folder}/spool.%n
StateSaveLocation={folder}/state
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SlurmdParameters=config_overrides
MinJobAge=300
SlurmdTimeout=10
SlurmctldTimeout=10
SchedulerParameters=sched_interval=1
GresTypes=gpu
"""

NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4{more}\n"


def missing() -> str | None:
    """Return what this machine lacks for running Slurm, if anything."""
    lacking = [name for name in NEEDED if not shutil.which(name)]
    if not find_spec("snakemake_executor_plugin_slurm"):
        lacking.append("Snakemake's plugin for it")
    if lacking:
        return f"needs Slurm: no {', '.join(lacking)}"
    if os.getuid() != 0:
        return "needs to be root: slurmd starts jobs as other users"
    return None


class Slurm:
    """Starts and stops the daemons; `partitions` maps names to nodes; "gpu" has GPUs."""

    def __init__(self, folder: Path, partitions: dict[str, list[str]]):
        self.folder = folder
        self.host = socket.gethostname().partition(".")[0]
        self.nodes = {name: kind for kind, names in partitions.items() for name in names}
        for name in ("state", "bin"):
            (folder / name).mkdir()
        ports = free_ports(1 + len(self.nodes))
        text = CONF.format(folder=folder, host=self.host, port=ports[0])
        gres = ""
        for (name, kind), port in zip(self.nodes.items(), ports[1:], strict=True):
            more = " RealMemory=32000" + (" Gres=gpu:1" if kind == "gpu" else "")
            text += NODE.format(name=name, host=self.host, port=port, more=more)
            gres += f"NodeName={name} Name=gpu File=/dev/null\n" if kind == "gpu" else ""
        for kind, names in partitions.items():
            text += f"PartitionName={kind} Nodes={','.join(names)} MaxTime=INFINITE State=UP\n"
        (folder / "slurm.conf").write_text(text)
        (folder / "gres.conf").write_text(gres)
        (folder / "cgroup.conf").write_text("CgroupPlugin=autodetect\n")
        (folder / "munge.key").write_bytes(os.urandom(64))
        (folder / "munge.key").chmod(0o400)
        # Jobs do not get Slurm's variables, and the starter of their steps looks in /etc.
        srun = folder / "bin/srun"
        srun.write_text(
            f'#!/bin/sh\nSLURM_CONF={folder}/slurm.conf exec {shutil.which("srun")} "$@"\n'
        )
        srun.chmod(0o755)
        #: Environment variables for using it.
        self.environment = {
            "SLURM_CONF": str(folder / "slurm.conf"),
            "SNAKEMAKE_SLURM_PARTITIONS": str(PROFILE / "partitions.yaml"),
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        }

    def __enter__(self):
        options = {
            "key-file": "munge.key", "socket": "munge.socket", "pid-file": "munged.pid",
            "log-file": "munged.log", "seed-file": "munge.seed",
        }  # fmt: skip
        named = (f"--{name}={self.folder / file}" for name, file in options.items())
        try:
            self._start("munged", "--force", *named)
            self._start("slurmctld")
            for name in self.nodes:
                self.start_node(name)
            deadline = time.monotonic() + 60
            while self.said("sinfo", "-h", "-N", "-o", "%T").count("idle") < len(self.nodes):
                assert time.monotonic() < deadline, (self.folder / "slurmctld.log").read_text()
                time.sleep(0.2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in self.nodes:
            self.kill_node(name)
        for daemon in ("slurmctld", "munged"):
            self._signal(daemon, signal.SIGTERM)

    def start_node(self, name: str) -> None:
        self._start("slurmd", "-N", name)

    def kill_node(self, name: str) -> list[str]:
        """Kill a slurmd and its node's processes, as in a power failure; return its jobs."""
        jobs = self.said("squeue", "-h", "-w", name, "-o", "%A").split()
        self._signal(name, signal.SIGKILL)
        for job in jobs:
            self.kill_processes(job, with_slurm=True)
        return jobs

    def kill_processes(self, job: str, with_slurm: bool = False) -> None:
        """Kill all processes of a job; if the node is lost, also those of Slurm that watch them."""
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.name().startswith("slurmstepd"):
                    is_of_job = with_slurm and f"[{job}." in " ".join(process.cmdline())
                else:
                    is_of_job = process.environ().get("SLURM_JOB_ID") == job
                if is_of_job:
                    process.kill()

    def restart_controller(self) -> None:
        self._signal("slurmctld", signal.SIGTERM)
        while (self.folder / "slurmctld.pid").exists():
            time.sleep(0.1)
        self._start("slurmctld")

    def said(self, *command: str) -> str:
        done = subprocess.run(
            command, env=os.environ | self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout

    def job(self, job: str) -> str:
        """Return the controller's record of a job."""
        return self.said("scontrol", "show", "job", job)

    def _start(self, *command: str) -> None:
        subprocess.run(
            command,
            env=os.environ | self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )

    def _signal(self, name: str, number: int) -> None:
        path = self.folder / f"{name}.pid"
        if path.exists():
            with suppress(ProcessLookupError):
                os.kill(int(path.read_text()), number)
            if number == signal.SIGKILL:
                path.unlink()


def free_ports(count: int) -> list[int]:
    """Return unused ports."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
