"""Grid Engine with one node on this machine, in its own folder, for tests of the profile.

A cluster that the machine belongs to is not affected.
"""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from tests.helpers.programs.slurm_nodes import free_ports

NEEDED = ("sge_qmaster", "sge_execd", "qsub", "qstat", "qconf", "qacct")

#: The programs that make a cluster's data, in Debian.
LIBRARY, SHARE = Path("/usr/lib/gridengine"), Path("/usr/share/gridengine")

BOOTSTRAP = """\
admin_user root
default_domain none
ignore_fqdn true
spooling_method classic
spooling_lib libspoolc
spooling_params {root}/default/common;{root}/qmaster
binary_path {root}/bin
qmaster_spool_dir {root}/qmaster
security_mode none
listener_threads 2
worker_threads 2
scheduler_threads 1
"""

CONFIGURATION = {
    "execd_spool_dir": "{root}/execd",
    "min_uid": "0",
    "min_gid": "0",
    "reporting_params": "accounting=true reporting=false flush_time=00:00:01 "
    "accounting_flush_time=00:00:01 joblog=false sharelog=00:00:00",
}

SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}


def missing() -> str | None:
    """Return what this machine lacks for running Grid Engine, if anything."""
    lacking = [name for name in NEEDED if not shutil.which(name)]
    if lacking or not (LIBRARY / "spooldefaults").exists():
        return f"needs Grid Engine of Debian: no {', '.join(lacking) or LIBRARY}"
    if os.getuid() != 0:
        return "needs to be root: sge_execd starts jobs as other users"
    return None


class GridEngine:
    """Starts and stops the daemons; the node has four slots and a GPU."""

    def __init__(self, root: Path):
        self.root = root
        self.host = socket.gethostname()
        ports = map(str, free_ports(2))
        names = ("SGE_ROOT", "SGE_CELL", "SGE_QMASTER_PORT", "SGE_EXECD_PORT")
        #: Environment variables for using it.
        self.environment = dict(zip(names, (str(root), "default", *ports), strict=True))
        for name in ("default/common", "qmaster/job_scripts", "execd", "bin", "utilbin"):
            (root / name).mkdir(parents=True)
        (root / "util").symlink_to(SHARE / "util")
        machine = self.said(str(root / "util/arch")).strip()
        for name in ("bin", "utilbin"):
            (root / name / machine).symlink_to(LIBRARY)
        # It changes the default queue and parallel environment; a second makes another time.
        changes = "; ".join(f"s/^{name} .*/{name} {value}/" for name, value in self.queue().items())
        (root / "editor").write_text(f"#!/bin/sh\nsleep 1\nsed -i '{changes}' \"$1\"\n")
        (root / "editor").chmod(0o755)
        common = root / "default/common"
        (common / "act_qmaster").write_text(f"{self.host}\n")
        (common / "host_aliases").write_text(f"{self.host} localhost\n")
        (common / "bootstrap").write_text(BOOTSTRAP.format(root=root))
        place = f"{common};{root}/qmaster"
        self.said(str(LIBRARY / "spoolinit"), "classic", "libspoolc", place, "init")
        own = {name: value.format(root=root) for name, value in CONFIGURATION.items()}
        configuration = with_values((SHARE / "default-configuration").read_text(), own)
        (root / "configuration").write_text(configuration)
        for kind, what in (
            ("configuration", root / "configuration"),
            ("complexes", SHARE / "util/resources/centry"),
            ("usersets", SHARE / "util/resources/usersets"),
            ("managers", "root"),
        ):
            self.said(str(LIBRARY / "spooldefaults"), kind, str(what))

    def __enter__(self):
        try:
            self.said(str(LIBRARY / "sge_qmaster"))
            self.wait_for("qconf", "-sh")
            self.said("qconf", "-as", self.host)
            self.said(str(LIBRARY / "sge_execd"))
            self.change("-sc", "-Mc", lambda text: f"{text}gpu gpu INT <= YES JOB 0 0\n")
            self.change("-ssconf", "-Msconf", lambda text: with_values(text, SCHEDULER))
            self.said("qconf", "-mattr", "exechost", "complex_values", "gpu=1", self.host)
            self.said("qconf", "-ap", "smp")
            self.said("qconf", "-aq", "all.q")
            while len(self.pids()) < 2:
                time.sleep(0.2)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for path in self.pids():
            os.kill(int(path.read_text()), signal.SIGKILL)

    def pids(self) -> list[Path]:
        """Return the files with the process numbers of the daemons, the one to end first first."""
        return [*self.root.glob("execd/*/execd.pid"), *self.root.glob("qmaster/qmaster.pid")]

    def queue(self) -> dict[str, str]:
        """Return values of the queue and of the parallel environment."""
        return {
            "slots": "4", "pe_list": "smp", "hostlist": self.host, "load_thresholds": "NONE",
        }  # fmt: skip

    def change(self, show: str, replace: str, changed) -> None:
        """Change a part of the configuration: from text to text."""
        (self.root / "changed").write_text(changed(self.said("qconf", show)))
        self.said("qconf", replace, str(self.root / "changed"))

    def wait_for(self, *command: str) -> None:
        deadline = time.monotonic() + 60
        while self._run(command).returncode:
            assert time.monotonic() < deadline, (self.root / "qmaster/messages").read_text()
            time.sleep(0.2)

    def said(self, *command: str) -> str:
        done = self._run(command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def _run(self, command):
        environment = os.environ | self.environment | {"EDITOR": str(self.root / "editor")}
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=60
        )


def with_values(text: str, values: dict[str, str]) -> str:
    """Return lines of names and values with other values."""
    lines = [line for line in text.splitlines() if line.split(" ")[0] not in values]
    return "\n".join([*lines, *(f"{name} {value}" for name, value in values.items())]) + "\n"
