"""An index that is replaced while others use it: each has the complete old or new one."""

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.index import store
from bwarp.index.build import build_reverse
from bwarp.index.store import added_to_index, load_index, save_index, write_reverse
from bwarp.index.verify import verify_index
from tests.helpers.cases.index_parts import assert_equal_indexes, parts_of
from tests.helpers.oracles.index_oracle import HOSTILE, index_of


@pytest.fixture(scope="module")
def sampled():
    """Return two indexes of one text."""
    return [index_of(HOSTILE["with gaps"], *rates) for rates in ((64, 3, 2), (32, 1, 4))]


@pytest.fixture(scope="module")
def without():
    """Return an index without the reverse BWT."""
    return index_of(HOSTILE["with gaps"], 64, 3, 2, with_reverse=False)


@pytest.fixture(scope="module")
def other():
    """Return an index with the same parameters of another text."""
    return index_of(HOSTILE["with gaps"][::-1], 64, 3, 2, with_reverse=False)


def test_an_open_index_does_not_change(tmp_path, sampled):
    """Arrays are loaded after the folder was replaced, and after it was removed."""
    folder = tmp_path / "index"
    for index in sampled:
        save_index(index, folder)
        before = load_index(folder)
        if index is sampled[0]:
            save_index(sampled[1], folder)
        else:
            shutil.rmtree(folder)
        assert_equal_indexes(index, before)


def test_an_index_is_replaced_while_others_open_it(tmp_path, sampled):
    folder = tmp_path / "index"
    save_index(sampled[0], folder)
    ended = threading.Event()

    def replace_it():
        while not ended.is_set():
            for index in reversed(sampled):
                save_index(index, folder)

    with ThreadPoolExecutor(1) as pool:
        replaced = pool.submit(replace_it)
        seen = {}
        try:
            while not replaced.done() and (len(seen) < 2 or min(seen.values()) < 100):
                loaded = load_index(folder)
                seen[loaded.sa_rate] = seen.get(loaded.sa_rate, 0) + 1
                assert_equal_indexes(sampled[loaded.sa_rate == 1], loaded)
        finally:
            ended.set()
        replaced.result()


def in_a_fork(function, *arguments) -> int:
    """Call a function in a separate process, like another writer of the same folder."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        finally:
            os._exit(status)
    return process


def save_apart(index, folder) -> None:
    assert os.waitpid(in_a_fork(save_index, index, folder), 0)[1] == 0


def add_reverse_to(stored, meanwhile=lambda: None) -> None:
    with added_to_index(stored) as part:
        write_reverse(build_reverse(stored.reference, 64, "cpu"), stored.description, part)
        meanwhile()


def assert_is_without_reverse(folder, index) -> None:
    loaded = load_index(folder)
    assert not loaded.has_reverse
    assert np.array_equal(loaded.suffix_array, index.suffix_array)
    verify_index(loaded)


def test_the_reverse_is_not_added_to_a_replacement(tmp_path, without, other):
    folder = tmp_path / "index"
    save_index(without, folder)
    stored = load_index(folder)
    with pytest.raises(InputError) as error:
        add_reverse_to(stored, lambda: save_apart(other, folder))
    assert str(error.value) == (
        f"{folder}: another index was written meanwhile and was left unchanged: run again to add "
        "the reverse BWT to it"
    )
    assert_is_without_reverse(folder, other)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    # The same index, rebuilt or completed by another process, is not a different one.
    for index in (without, index_of(HOSTILE["with gaps"], 64, 3, 2)):
        save_index(without, folder)
        stored = load_index(folder)
        add_reverse_to(stored, lambda index=index: save_apart(index, folder))
        verify_index(load_index(folder))
        assert load_index(folder).has_reverse


def test_the_reverse_is_not_added_to_a_removed_index(tmp_path, without):
    folder = tmp_path / "index"
    save_index(without, folder)
    with pytest.raises(InputError, match="no such index"), added_to_index(load_index(folder)):
        shutil.rmtree(folder)
    assert list(tmp_path.iterdir()) == []


def test_an_index_is_not_replaced_while_the_reverse_is_added(tmp_path, without, other, monkeypatch):
    """The builder finishes after one of the files was moved, and waits for the others."""
    folder = tmp_path / "index"
    save_index(without, folder)
    stored, move = load_index(folder), os.replace
    builders = []

    def move_slowly(source, target):
        move(source, target)
        if Path(source).name == "reverse_blocks.npy":
            builders.append(in_a_fork(save_index, other, folder))
            time.sleep(0.5)
            assert os.waitpid(builders[0], os.WNOHANG) == (0, 0)

    monkeypatch.setattr(os, "replace", move_slowly)
    add_reverse_to(stored)
    assert os.waitpid(builders[0], 0)[1] == 0
    assert_is_without_reverse(folder, other)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_a_lock_that_a_killed_run_left_is_no_obstacle(tmp_path, without):
    (tmp_path / ".index.lock").touch()
    save_index(without, tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_folders_with_changing_inode_numbers_do_not_cause_a_loop(tmp_path, sampled, monkeypatch):
    save_index(sampled[0], tmp_path / "index")
    monkeypatch.setattr(store, "_is_at", lambda folder, opened: False)
    assert_equal_indexes(sampled[0], load_index(tmp_path / "index"))


def test_files_of_another_index_are_noticed(tmp_path, sampled):
    """For example when one index is copied over another, file by file."""
    for name, index in zip("ab", sampled, strict=True):
        save_index(index, tmp_path / name)
    shutil.copy(tmp_path / "b" / "suffix_array.npy", tmp_path / "a")
    with pytest.raises(InputError, match=r"suffix_array\.npy: the file has .* build the index"):
        parts_of(load_index(tmp_path / "a"))
