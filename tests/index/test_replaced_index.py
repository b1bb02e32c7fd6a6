"""An index that is replaced while others use it: each has the old one or the new one as a whole."""

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from bwarp.errors import InputError
from bwarp.index import store
from bwarp.index.store import load_index, save_index
from tests.helpers.cases.index_parts import assert_equal_indexes, parts_of
from tests.helpers.oracles.index_oracle import HOSTILE, index_of


@pytest.fixture(scope="module")
def sampled():
    """Two indexes of one text."""
    return [index_of(HOSTILE["with gaps"], *rates) for rates in ((64, 3, 2), (32, 1, 4))]


def test_an_index_that_was_opened_is_what_it_was(tmp_path, sampled):
    """Arrays are asked for when the folder has been replaced, and when it has gone."""
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


def test_a_disk_that_numbers_its_folders_anew_is_not_asked_for_ever(tmp_path, sampled, monkeypatch):
    save_index(sampled[0], tmp_path / "index")
    monkeypatch.setattr(store, "_is_at", lambda folder, opened: False)
    assert_equal_indexes(sampled[0], load_index(tmp_path / "index"))


def test_files_of_another_index_are_noticed(tmp_path, sampled):
    """Such as a copy makes over an index, file by file."""
    for name, index in zip("ab", sampled, strict=True):
        save_index(index, tmp_path / name)
    shutil.copy(tmp_path / "b" / "suffix_array.npy", tmp_path / "a")
    with pytest.raises(InputError, match=r"suffix_array\.npy: the file has .* build the index"):
        parts_of(load_index(tmp_path / "a"))
