"""A program run by a server behaves like one that is started directly."""

import subprocess
import sys

import pytest

from tests.helpers.programs.program_server import ProgramServer

SCRIPT = """
import atexit, os, sys, threading, time
atexit.register(print, "at exit")
print(sys.argv, os.getcwd(), os.environ.get("COLOUR"), sys.path[0], __name__)
print(sys.stdin.read(), file=sys.stderr)
def late():
    time.sleep(0.1)
    print("thread")
threading.Thread(target=late).start()
{end}
"""


@pytest.fixture(scope="module")
def server():
    server = ProgramServer("json")
    yield server
    server.close()


@pytest.mark.parametrize(
    "end",
    ["pass", "sys.exit(3)", "sys.exit()", "sys.exit('why')", "1 / 0", "import decimal"],
)
def test_as_if_it_were_started(server, tmp_path, end):
    script = tmp_path / "script é.py"
    script.write_text(SCRIPT.format(end=end))
    words = [script, "a b", 1]
    started = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=tmp_path,
        env={"COLOUR": "red", "PYTHONPATH": ""},
        input="in\n",
        capture_output=True,
        text=True,
        check=False,
    )
    rc, out, err = server.run(words, cwd=tmp_path, stdin="in\n", environment={"COLOUR": "red"})
    assert (rc, out) == (started.returncode, started.stdout)
    assert err.splitlines()[:1] == started.stderr.splitlines()[:1]
    assert err.splitlines()[-1:] == started.stderr.splitlines()[-1:]


def test_a_function_that_leaves_something_in_memory(tmp_path):
    (tmp_path / "script.py").write_text("import tracemalloc\nprint(tracemalloc.is_tracing())\n")
    server = ProgramServer("tracemalloc:start")
    rc, out, _ = server.run([tmp_path / "script.py"])
    server.close()
    assert (rc, out) == (0, "True\n")


def test_a_module_with_merged_streams(server):
    rc, said, _ = server.run(["-m", "json.tool", "absent"], merged=True)
    assert rc != 0
    assert "absent" in said


def test_a_program_that_does_not_end(server, tmp_path):
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(60)\n")
    with pytest.raises(subprocess.TimeoutExpired):
        server.run([tmp_path / "slow.py"], timeout=0.3)
    (tmp_path / "fast.py").write_text("print('still there')\n")
    assert server.run([tmp_path / "fast.py"]) == (0, "still there\n", "")
