"""A program that is forked for a job behaves like one that Python starts."""

import os
import subprocess
import sys

import pytest

from tests.helpers.programs.forked_python import ForkedPython
from tests.helpers.programs.test_program_server import SCRIPT


@pytest.fixture(scope="module")
def python():
    python = ForkedPython("json")
    yield python
    python.close()


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "1 / 0"])
@pytest.mark.parametrize("of", ["bash", "file"])
def test_as_if_it_were_started(python, tmp_path, of, end):
    script = tmp_path / "script é.py"
    script.write_text(SCRIPT.format(end=end))
    done = [
        subprocess.run(
            ["bash", "-c", f"COLOUR=red {name} 'script é.py' 'a b' 1 || exit $?"],
            cwd=tmp_path,
            env=environment,
            input="in\n",
            capture_output=True,
            text=True,
            check=False,
        )
        for name, environment in (
            ("python", python.environment) if of == "bash" else (python.executable, {}),
            (f"'{sys.executable}'", {}),
        )
    ]
    forked, started = done
    assert (forked.returncode, forked.stdout) == (started.returncode, started.stdout)
    assert forked.stderr.splitlines()[:1] == started.stderr.splitlines()[:1]
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_a_program_that_is_killed(python, tmp_path):
    (tmp_path / "killed.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    command = ["bash", "-c", "python killed.py || exit $?"]
    environment = os.environ | python.environment
    assert subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode == 137


def test_programs_run_side_by_side(python, tmp_path):
    """Each waits for the output of the other."""
    text = """import sys, time
from pathlib import Path
own, other = sys.argv[1:]
Path(own).touch()
while not Path(other).exists():
    time.sleep(0.01)
"""
    (tmp_path / "wait.py").write_text(text)
    where = {"cwd": tmp_path, "env": os.environ | python.environment}
    started = [
        subprocess.Popen(["bash", "-c", f"python wait.py {names}"], **where)
        for names in ("a b", "b a")
    ]
    assert [process.wait(20) for process in started] == [0, 0]
