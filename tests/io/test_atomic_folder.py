"""Folders appear complete or not at all, and only replace folders of their own kind."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bwarp.errors import UsageError
from bwarp.io import atomic_output as module
from bwarp.io.atomic_output import atomic_folder, exchange
from tests.helpers.programs.left_behind import dead_process, names

OWN = ("index.json", "table.npy")


@pytest.fixture
def index(tmp_path) -> Path:
    """Return a folder of the right kind, alone in another one."""
    path = tmp_path / "index"
    path.mkdir()
    (path / "index.json").write_text("old")
    (path / "table.npy").write_text("old")
    return path


def write(path) -> None:
    with atomic_folder(path, OWN) as part:
        (part / "index.json").write_text("new")


def refusal(path) -> str:
    """Return the immediate error for a path that cannot be written."""
    with pytest.raises(UsageError) as caught, atomic_folder(path, OWN):
        pytest.fail("the work had begun")
    return str(caught.value)


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "index"
    leftover = tmp_path / f".index.{dead_process()}.part"
    leftover.mkdir()
    (leftover / "half.npy").write_text("half")
    with atomic_folder(path, OWN) as part:
        (part / "index.json").write_text("{}")
        assert not path.exists()
    assert names(path) == ["index.json"]
    assert names(tmp_path) == ["index"]


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_older_folder_is_replaced_as_a_whole(tmp_path, index, monkeypatch, can_exchange):
    if not can_exchange:
        monkeypatch.setattr(module, "exchange", lambda one, other: False)
    (index / ".snakemake_timestamp").touch()
    write(index)
    assert names(index) == ["index.json"]
    assert (index / "index.json").read_text() == "new"
    assert names(tmp_path) == ["index"]


def test_two_folders_exchange_their_names(tmp_path, index):
    other = tmp_path / "ein Ordner"
    other.mkdir()
    assert exchange(other, index)
    assert names(other) == sorted(OWN)
    assert names(index) == []
    assert not exchange(other, tmp_path / "absent")


def test_a_failed_folder_leaves_the_old_one(tmp_path, index):
    with pytest.raises(ZeroDivisionError), atomic_folder(index, OWN):
        raise ZeroDivisionError
    assert names(index) == sorted(OWN)
    assert names(tmp_path) == ["index"]


def test_a_link_to_a_folder_stays_one(tmp_path, index):
    (tmp_path / "link").symlink_to(index)
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (index / "index.json").read_text() == "new"
    assert names(tmp_path) == ["index", "link"]


def test_a_file_where_a_folder_is_to_be(tmp_path):
    (tmp_path / "a").write_text("")
    message = f"{tmp_path}/a: is a file: give the name of a folder to create"
    assert refusal(tmp_path / "a") == message


def test_a_folder_of_something_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    assert refusal(tmp_path) == (
        f"{tmp_path}: contains other files and no index.json: give the name of a new folder, or "
        "of one to replace"
    )
    assert names(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize("name", ["genome.fa", ".hidden", "table.npy.bak", "folder/"])
def test_files_of_others_are_never_removed(tmp_path, index, name):
    if name.endswith("/"):
        (index / name).mkdir()
    else:
        (index / name).write_text("mine")
    name = name.rstrip("/")
    assert refusal(index) == (
        f"{index}: contains {name}, which was not written with the rest and would be lost: move "
        "it, or give the name of a new folder"
    )
    assert names(index) == sorted([name, *OWN])
    assert names(tmp_path) == ["index"]


def test_a_file_that_was_put_there_meanwhile(tmp_path, index):
    def write_while_somebody_else_does():
        with atomic_folder(index, OWN) as part:
            (part / "index.json").write_text("new")
            (index / "notes.txt").write_text("mine")

    with pytest.raises(UsageError, match=r"contains notes\.txt"):
        write_while_somebody_else_does()
    assert (index / "index.json").read_text() == "old"
    assert (index / "notes.txt").read_text() == "mine"
    assert names(tmp_path) == ["index"]


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "index").mkdir()
    write(tmp_path / "index")
    assert names(tmp_path / "index") == ["index.json"]


@pytest.mark.parametrize("name", [".", "../index", "link"])
def test_the_current_folder(tmp_path, monkeypatch, index, name):
    (tmp_path / "link").symlink_to(index)
    monkeypatch.chdir(index)
    path = tmp_path / "link" if name == "link" else name
    assert refusal(path).endswith(": is the current folder: give the name of a folder in it")
    assert names(index) == sorted(OWN)


def test_a_folder_where_a_disk_is_mounted(small_disk):
    assert refusal(small_disk) == (
        f"{small_disk}: is a mount point: give the name of a folder in it"
    )


def test_a_replaced_folder_whose_run_was_killed_comes_back(tmp_path, index):
    left = tmp_path / f".index.{dead_process()}.old"
    index.rename(left)
    with pytest.raises(ZeroDivisionError), atomic_folder(index, OWN):
        raise ZeroDivisionError
    assert names(index) == sorted(OWN)
    index.rename(left)
    write(index)
    assert names(tmp_path) == ["index"]
    assert names(index) == ["index.json"]


@contextlib.contextmanager
def folder_of_nobody():
    """Return a folder in which an unprivileged user may write."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o777)
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to act as another user")
def test_a_folder_that_may_not_be_changed(checkout):
    code = (
        "import os; os.setuid(65534)\n"
        "import pathlib; from bwarp.io.atomic_output import atomic_folder\n"
        "index = pathlib.Path('index'); index.mkdir(); (index / 'index.json').touch()\n"
        "index.chmod(0o555)\n"
        "with atomic_folder('index', ['index.json']): pass\n"
    )
    with folder_of_nobody() as folder:
        # Its modules are imported before it drops its privileges.
        run = [sys.executable, "-c", "import bwarp.io.atomic_output, pathlib\n" + code]
        done = subprocess.run(
            run, cwd=folder, env=os.environ | {"PYTHONPATH": str(checkout)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr.splitlines()[-1] == (
            "bwarp.errors.InputError: index: no permission to replace this folder: "
            "choose another output"
        )
        assert names(folder) == ["index"]
