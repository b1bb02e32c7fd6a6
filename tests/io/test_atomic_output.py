"""Outputs appear complete or not at all, and never destroy other files."""

import gzip
import itertools
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bwarp.errors import UsageError
from bwarp.io.atomic_output import (
    atomic_file,
    atomic_files,
    make_folder,
    name_outputs,
    named_together,
    private_folder,
)
from tests.helpers.programs.left_behind import dead_process, names


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_file(path) as file:
        file.write(b"whole")
        file.flush()
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert names(path.parent) == ["out.txt"]


def test_a_text_file(tmp_path):
    with atomic_file(tmp_path / "out.txt", "wt") as file:
        file.write("é\n")
    assert (tmp_path / "out.txt").read_bytes() == "é\n".encode()


def test_a_gz_file_has_the_same_bytes_every_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        with atomic_file(tmp_path / name) as file:
            file.write(b"ACGT" * 1000)
    first = (tmp_path / "a.gz").read_bytes()
    assert gzip.decompress(first) == b"ACGT" * 1000
    assert first == (tmp_path / "b.gz").read_bytes()
    assert first[4:8] == bytes(4)  # no time of day in it


def test_a_failed_file_leaves_the_old_one(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def fail_half_way(file):
        file.write(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), atomic_file(path) as file:
        fail_half_way(file)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.txt"]


def test_dash_is_standard_output(capfdbinary):
    with atomic_file("-") as file:
        file.write(b"table\n")
    with atomic_file("-", "wt") as file:
        file.write("text\n")
    assert capfdbinary.readouterr().out == b"table\ntext\n"


def test_a_device_is_written_to_and_stays_one():
    with atomic_file("/dev/null") as file:
        file.write(b"gone")
    assert not os.path.isfile("/dev/null")


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    link = tmp_path / "out.txt"
    link.symlink_to(tmp_path / "disk" / "real.txt")
    with atomic_file(link) as file:
        file.write(b"whole")
    assert link.is_symlink()
    assert (tmp_path / "disk" / "real.txt").read_bytes() == b"whole"


def test_a_folder_where_a_file_is_to_be(tmp_path):
    with pytest.raises(UsageError) as caught, atomic_file(tmp_path):
        pass
    assert str(caught.value) == f"{tmp_path}: is a folder: give the name of a file to write"


def test_a_file_where_a_folder_is_to_be(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError) as caught, atomic_file(tmp_path / "a" / "b" / "out.txt"):
        pass
    assert str(caught.value) == f"{tmp_path}/a: is a file, not a folder: choose another output"


def test_a_folder_that_does_not_exist_is_not_made(tmp_path):
    path = tmp_path / "missing" / "deep" / "out.txt"
    for write in (atomic_file, private_folder):
        with pytest.raises(UsageError) as caught, write(path):
            pass
        assert str(caught.value) == (
            f"{path}: no such folder {path.parent}: create it, or choose another output"
        )
    assert names(tmp_path) == []


def test_leftovers_of_a_killed_and_unreaped_run_are_removed(tmp_path):
    """For example in a container whose first process does not wait for its children."""
    with subprocess.Popen(["sleep", "60"]) as killed:
        part = tmp_path / f".out.txt.{killed.pid}.part"
        part.write_text("half")
        with atomic_file(tmp_path / "out.txt") as file:
            file.write(b"all")
        assert part.exists()
        killed.kill()
        os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)
        with atomic_file(tmp_path / "out.txt") as file:
            file.write(b"all")
        assert not part.exists()


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    left = [f".out.txt.{process}.part" for process in (dead_process(), os.getpid())]
    kept = [f".out.txt.{os.getppid()}.part", f".other.{dead_process()}.part", ".out.txt.part"]
    for name in left + kept:
        (tmp_path / name).write_text("half")
    with atomic_file(tmp_path / "out.txt") as file:
        file.write(b"whole")
    assert names(tmp_path) == sorted([*kept, "out.txt"])


def test_leftovers_of_an_index_are_removed_with_its_file(tmp_path):
    path, dead = tmp_path / "a.bam", dead_process()
    (tmp_path / f".a.bam.bai.{dead}.made").write_text("index")
    (tmp_path / f".a.bam.csi.{dead}.old").write_text("older index")
    (tmp_path / f".a.bam.json.{dead}.part").write_text("of another output")
    with private_folder(path):
        pass
    assert names(tmp_path) == sorted([f".a.bam.json.{dead}.part", "a.bam.csi"])
    assert (tmp_path / "a.bam.csi").read_text() == "older index"


def test_other_names_of_standard_output(tmp_path):
    code = (
        "from bwarp.io.atomic_output import atomic_file\n"
        "with atomic_file('/dev/stdout') as file: file.write(b'new')"
    )
    with open(tmp_path / "log", "wb") as log:
        log.write(b"old ")
    with open(tmp_path / "log", "ab") as log:
        subprocess.run([sys.executable, "-c", code], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "old new"


def test_a_hard_link_to_an_output_keeps_its_content(tmp_path):
    (tmp_path / "reads").write_text("old")
    (tmp_path / "out").hardlink_to(tmp_path / "reads")
    with atomic_file(tmp_path / "out", "w") as file:
        file.write("new")
    assert (tmp_path / "reads").read_text() == "old"


def use_and_fail(path: Path) -> None:
    with private_folder(path) as folder:
        assert folder.parent == path.parent
        assert names(path.parent) == [folder.name]
        (folder / "run").write_text("work")
        raise ZeroDivisionError


def test_a_private_folder_is_always_removed(tmp_path):
    path = tmp_path / "new" / "out.bam"
    (tmp_path / "new" / f".out.bam.{dead_process()}.part").mkdir(parents=True)
    with pytest.raises(ZeroDivisionError):
        use_and_fail(path)
    assert names(path.parent) == []
    for folder in (tmp_path, f"{tmp_path}/absent/"):
        with pytest.raises(UsageError, match="is a folder: give the name of a file to write"):
            use_and_fail(folder)


def test_no_folder_takes_the_place_of_a_pipe_or_a_device(tmp_path):
    os.mkfifo(tmp_path / "pipe.bam")
    (tmp_path / "null.bam").symlink_to("/dev/null")
    for name, place in (("pipe.bam", tmp_path / "pipe.bam"), ("null.bam", "/dev/null")):
        with pytest.raises(UsageError) as caught:
            use_and_fail(tmp_path / name)
        message = f"{place}: is a pipe or a device: give the name of a file to write"
        assert str(caught.value) == message


def lines_of(seed, n=150_000):
    numbers = random.Random(seed)
    return b"".join(b"read%d\t%d\n" % (i, numbers.randrange(10**6)) for i in range(n))


def compressed(path, data, sizes, threads=1):
    """Return the content of a file written in pieces of these sizes, repeatedly."""
    with atomic_file(path, threads=threads) as file:
        at = 0
        for size in itertools.cycle(sizes):
            file.write(data[at : at + size])
            at += size
            if at >= len(data):
                break
    return path.read_bytes()


def test_compressed_bytes_do_not_depend_on_how_they_were_written(tmp_path):
    data = lines_of(1)
    assert len(data) > 2 << 20
    whole = compressed(tmp_path / "whole.gz", data, [len(data)])
    assert gzip.decompress(whole) == data
    for sizes in ([911], [7, 100_000, 3], [1 << 20], [(1 << 20) - 1, 2]):
        for threads in (1, 2, 8):
            assert compressed(tmp_path / "cut.gz", data, sizes, threads) == whole


def test_compressed_bytes_do_not_depend_on_other_files(tmp_path):
    data = [lines_of(seed, 70_000) for seed in range(4)]

    def in_order(order):
        return [compressed(tmp_path / f"{i}-{order[0]}.gz", data[i], [50_000 + i]) for i in order]

    first = in_order([0, 1, 2, 3])
    assert in_order([3, 2, 1, 0]) == first[::-1]
    with ThreadPoolExecutor(4) as pool:
        orders = ([1, 0, 3, 2], [2, 3, 0, 1], [3, 1, 2, 0])
        for order, beside in zip(orders, pool.map(in_order, orders), strict=True):
            assert beside == [first[i] for i in order]


@pytest.mark.parametrize("data", [b"", b"x", bytes((1 << 20) - 1), bytes(1 << 20)])
def test_compressed_files_of_any_size(tmp_path, data):
    for threads in (1, 3):
        assert gzip.decompress(compressed(tmp_path / "a.gz", data, [1 << 21], threads)) == data


def test_threads_end_with_a_failed_run(tmp_path):
    before = threading.active_count()

    def write_and_fail():
        with atomic_file(tmp_path / "a.gz", threads=4) as file:
            file.write(lines_of(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


def test_compressed_text_is_whole(tmp_path):
    with atomic_file(tmp_path / "t.txt.gz", "w") as file:
        for _ in range(30_000):
            file.write("äöü line\n")
    assert gzip.decompress((tmp_path / "t.txt.gz").read_bytes()).decode() == "äöü line\n" * 30_000


def test_files_appear_together(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b.gz"]
    with atomic_files(paths) as (first, second):
        first.write(b"1")
        second.write(b"2")
        assert not any(path.exists() for path in paths)
    assert paths[0].read_bytes() == b"1"
    assert gzip.decompress(paths[1].read_bytes()) == b"2"


def test_if_the_last_of_several_files_fails_none_appears(tmp_path):
    def write():
        with atomic_files([tmp_path / "first", tmp_path / "last"]) as (first, last):
            first.write(b"whole")
            last.write(b"x")
            # Closing fails, because the bytes are still in memory.
            os.dup2(os.open("/dev/full", os.O_WRONLY), last.fileno())

    with pytest.raises(OSError, match="No space left"):
        write()
    assert os.listdir(tmp_path) == []


def write_some(folder, fail=False):
    """Write a file, two more in a new folder, and one of a private folder, together."""
    with named_together():
        with atomic_file(folder / "a", "w") as file:
            file.write("new a")
        make_folder(folder / "in")
        with atomic_files([folder / "in" / "b", folder / "in" / "c.gz"]):
            pass
        with private_folder(folder / "d") as work:
            (work / "made").write_text("new d")
            name_outputs([(work / "made", folder / "d")], [folder / "old"])
        shown = {path.name for path in folder.rglob("*") if path.name[0] != "."}
        assert shown <= {"in", "a", "old"}
        if fail:
            raise KeyError


def test_complete_outputs_wait_for_others(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "old").touch()
    write_some(tmp_path)
    assert names(tmp_path) == ["a", "d", "in"]
    assert names(tmp_path / "in") == ["b", "c.gz"]
    assert (tmp_path / "a").read_text() + (tmp_path / "d").read_text() == "new anew d"
    # Afterwards files get their names at once.
    with atomic_file(tmp_path / "e"):
        pass
    assert (tmp_path / "e").exists()


def test_after_an_error_complete_outputs_do_not_appear(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "old").touch()
    with pytest.raises(KeyError):
        write_some(tmp_path, fail=True)
    assert names(tmp_path) == ["a", "old"]
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize("links", [True, False])
def test_if_a_name_cannot_be_given_older_files_stay(tmp_path, monkeypatch, links):
    (tmp_path / "a").write_text("old")
    if not links:
        monkeypatch.setattr(os, "link", lambda *_: os.close(-1))

    def write():
        with named_together():
            for name in "ade":
                with atomic_file(tmp_path / name):
                    pass
            # Somebody creates a folder of that name in the meantime.
            (tmp_path / "d").mkdir()

    with pytest.raises(IsADirectoryError):
        write()
    assert names(tmp_path) == ["a", "d"]
    assert (tmp_path / "a").read_text() == "old"
    (tmp_path / "d").rmdir()
    with named_together():
        for name in "ade":
            with atomic_file(tmp_path / name):
                pass
    assert names(tmp_path) == ["a", "d", "e"]
    assert (tmp_path / "a").read_text() == ""
