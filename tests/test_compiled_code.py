"""Compiled functions are kept apart for every state of the code that they were made of."""

import os

import pytest

from bwarp.compiled_code import keep_compiled_code


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    folder = tmp_path / "package"
    (folder / "part").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "part" / "kernels.py").write_text("a = 1\n")
    yield folder
    os.environ.pop("NUMBA_CACHE_DIR", None)


def folder_for(package) -> str:
    os.environ.pop("NUMBA_CACHE_DIR", None)
    keep_compiled_code(package)
    return os.environ["NUMBA_CACHE_DIR"]


def test_an_edit_anywhere_in_the_package_changes_the_folder(package):
    before = folder_for(package)
    assert before.startswith(str(package / "__pycache__"))
    assert folder_for(package) == before
    (package / "part" / "kernels.py").write_text("a = 10\n")
    assert folder_for(package) != before


def test_what_the_environment_says_is_kept(package, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/somewhere")
    keep_compiled_code(package)
    assert os.environ["NUMBA_CACHE_DIR"] == "/somewhere"


def test_a_package_that_cannot_be_written_uses_the_users_cache(package, monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert folder_for(package).startswith(str(tmp_path / "cache" / "bwarp" / "numba-"))


def test_folders_unused_for_a_day_are_removed(package):
    old, new = (package / "__pycache__" / f"numba-{name}" for name in ("old", "new"))
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    folder_for(package)
    assert not old.exists()
    assert new.exists()
