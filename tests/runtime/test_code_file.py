"""The file of compiled functions: what is put there is found, whatever happens to others."""

import hashlib
import multiprocessing
import os

import pytest

from bwarp.runtime import code_file
from bwarp.runtime.code_file import CodeFile


def key(word) -> bytes:
    return hashlib.sha256(str(word).encode()).digest()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "cpu.code"


def test_what_was_put_is_found_also_by_others(path):
    one, other = CodeFile(path), CodeFile(path)
    assert other.get(key("a")) is None
    one.put(key("a"), b"first")
    one.put(key("b"), b"")
    assert [file.get(key("a")) for file in (one, other)] == [b"first", b"first"]
    assert other.get(key("b")) == b""
    other.put(key("c"), b"third")
    assert one.get(key("c")) == b"third"


def test_what_is_there_is_not_put_again(path):
    CodeFile(path).put(key("a"), b"first")
    CodeFile(path).put(key("a"), b"other")
    assert CodeFile(path).get(key("a")) == b"first"


@pytest.mark.parametrize("cut", [1, 5, 20, 45, 48])
def test_an_entry_that_was_cut_off_is_passed_over_and_replaced(path, cut):
    file = CodeFile(path)
    file.put(key("a"), b"first")
    file.put(key("b"), b"second")
    os.truncate(path, path.stat().st_size - cut)
    assert CodeFile(path).get(key("b")) is None
    assert CodeFile(path).get(key("a")) == b"first"
    # Also by one that had seen it whole.
    file.put(key("c"), b"third")
    file.put(key("b"), b"again")
    found = [CodeFile(path).get(key(word)) for word in "abc"]
    assert found == [b"first", b"again", b"third"]


def test_a_damaged_value_is_none(path):
    CodeFile(path).put(key("a"), b"first")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert CodeFile(path).get(key("a")) is None


def test_a_file_that_has_grown_too_large_begins_anew(path, monkeypatch):
    monkeypatch.setattr(code_file, "MOST_BYTES", 1_000)
    file, reader = CodeFile(path), CodeFile(path)
    file.put(key("a"), bytes(2_000))
    assert reader.get(key("a")) == bytes(2_000)
    file.put(key("b"), b"not kept")
    file.put(key("c"), b"kept")
    assert [CodeFile(path).get(key(word)) for word in "abc"] == [None, None, b"kept"]
    # Who had it open may go on with what was there.
    assert reader.get(key("a")) == bytes(2_000)
    assert reader.get(key("c")) == b"kept"


def test_a_file_that_was_removed_is_made_again(path):
    file = CodeFile(path)
    file.put(key("a"), b"first")
    path.unlink()
    file.put(key("b"), b"second")
    assert file.get(key("b")) == b"second"


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    file = CodeFile(tmp_path / "file" / "cpu.code")
    file.put(key("a"), b"first")
    assert file.get(key("a")) is None


def _put_many(path, first):
    file = CodeFile(path)
    for number in range(first, first + 50):
        file.put(key(number), str(number).encode() * 1000)


def test_several_that_append_at_a_time_lose_nothing(path):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_put_many, args=(path, 40 * i)) for i in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    file = CodeFile(path)
    assert [file.get(key(number)) for number in range(130)] == [
        str(number).encode() * 1000 for number in range(130)
    ]
