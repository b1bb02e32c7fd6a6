"""`.ci/run` first runs the commands of the front page, as a user would."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

#: Prints its arguments and folder; fails for `make test` if requested.
MAKE = """#!/bin/sh
echo "$@ CUDA=$CUDA $(ls)" >> "$CALLS"
[ "$*" != "$FAILS" ]
"""

FRONT_PAGE = """
```sh
make nothing
```
## Two commands
Type
```sh
make run
make test   # and wait
```
and
```sh
make coffee
```
## More
"""


@pytest.fixture
def run_in(checkout, tmp_path):
    """Return a function that runs .ci/run with a front page: exit code, calls and errors."""

    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def run(front_page, fails=""):
        repository = tmp_path / "a checkout"
        (repository / ".ci").mkdir(parents=True)
        shutil.copy(checkout / ".ci/run", repository / ".ci/run")
        (repository / "README.md").write_text(front_page)
        git = ["git", "-C", repository, "-c", "user.name=n", "-c", "user.email=e@x"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "All"]):
            subprocess.run([*git, *words], env=environment, check=True)
        (repository / "left-over").touch()
        (tmp_path / "make").write_text(MAKE)
        (tmp_path / "make").chmod(0o755)
        (tmp_path / "temporary").mkdir()
        process = subprocess.run(
            [repository / ".ci/run"],
            env=environment
            | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "temporary")}
            | {"CALLS": str(tmp_path / "calls"), "FAILS": fails, "CUDA": "12", "ARGS": "-k x"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert not list((tmp_path / "temporary").iterdir())
        calls = tmp_path / "calls"
        return process.returncode, calls.read_text() if calls.exists() else "", process.stderr

    return run


def test_the_commands_of_the_front_page_come_first_in_a_fresh_clone(run_in):
    rc, calls, _ = run_in(FRONT_PAGE)
    assert rc == 0
    assert calls.splitlines() == [
        "run CUDA= README.md",
        "test CUDA= README.md",
        "lint CUDA=13 CUDA= README.md",
        "docs CUDA=13 CUDA= README.md",
        "test CUDA=13 ARGS=-m 'compiler or data' CUDA= README.md",
    ]


@pytest.mark.parametrize(
    ("fails", "calls"), [("run", 1), ("test", 2), ("lint CUDA=13", 3), ("docs CUDA=13", 4)]
)
def test_it_ends_at_the_first_command_that_fails(run_in, fails, calls):
    rc, called, _ = run_in(FRONT_PAGE, fails)
    assert (rc != 0, len(called.splitlines())) == (True, calls)


def test_a_front_page_without_commands_is_an_error(run_in):
    assert run_in(FRONT_PAGE.replace("Two", "Three")) == (
        1, "", ".ci/run: README.md has no commands under 'Two commands'\n"
    )  # fmt: skip
