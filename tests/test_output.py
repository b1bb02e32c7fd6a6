"""Outputs appear whole or not at all, and never at the cost of something else."""

import gzip
import itertools
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bwarp.errors import UsageError
from bwarp.output import atomic_file, atomic_files, atomic_folder, check_outputs, private_folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dead_process() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "new" / "out.txt"
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
    assert str(caught.value) == f"{tmp_path}: is a folder; give the name of a file to write"


def test_a_file_where_a_folder_is_to_be(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UsageError) as caught, atomic_file(tmp_path / "a" / "b" / "out.txt"):
        pass
    assert str(caught.value) == f"{tmp_path}/a: is a file, so nothing can be written below it"
    with pytest.raises(UsageError) as caught, atomic_folder(tmp_path / "a"):
        pass
    assert str(caught.value) == f"{tmp_path}/a: is a file; give the name of a folder to create"


def test_what_a_killed_run_left_is_removed(tmp_path):
    left = [f".out.txt.{process}.part" for process in (dead_process(), os.getpid())]
    kept = [f".out.txt.{os.getppid()}.part", f".other.{dead_process()}.part", ".out.txt.part"]
    for name in left + kept:
        (tmp_path / name).write_text("half")
    with atomic_file(tmp_path / "out.txt") as file:
        file.write(b"whole")
    assert names(tmp_path) == sorted([*kept, "out.txt"])


def test_a_folder_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "index"
    leftover = tmp_path / f".index.{dead_process()}.part"
    leftover.mkdir()
    (leftover / "half.npy").write_text("half")
    with atomic_folder(path) as part:
        (part / "index.json").write_text("{}")
        assert not path.exists()
    assert names(path) == ["index.json"]
    assert names(tmp_path) == ["index"]


def test_an_older_folder_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "index"
    path.mkdir()
    (path / "index.json").write_text("old")
    (path / "table.npy").write_text("old")
    with atomic_folder(path) as part:
        (part / "index.json").write_text("new")
    assert names(path) == ["index.json"]
    assert (path / "index.json").read_text() == "new"
    assert names(tmp_path) == ["index"]


def test_a_failed_folder_leaves_the_old_one(tmp_path):
    path = tmp_path / "index"
    path.mkdir()
    (path / "index.json").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_folder(path):
        raise ZeroDivisionError
    assert (path / "index.json").read_text() == "old"
    assert names(tmp_path) == ["index"]


def test_a_folder_of_something_else_is_never_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError) as caught, atomic_folder(tmp_path):
        pass
    assert str(caught.value) == (
        f"{tmp_path}: holds other files, and no index.json; "
        "give the name of a new folder, or of one to replace"
    )
    assert names(tmp_path) == ["thesis.tex"]


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "index").mkdir()
    with atomic_folder(tmp_path / "index") as part:
        (part / "index.json").write_text("new")
    assert names(tmp_path / "index") == ["index.json"]


def test_the_folder_we_stand_in(tmp_path, monkeypatch):
    (tmp_path / "index").mkdir()
    monkeypatch.chdir(tmp_path / "index")
    with atomic_folder(".") as part:
        (part / "index.json").write_text("new")
    assert names(tmp_path / "index") == ["index.json"]
    assert names(tmp_path) == ["index"]


def use_and_fail(path: Path) -> None:
    with private_folder(path) as folder:
        assert folder.parent == path.parent
        assert names(path.parent) == [folder.name]
        (folder / "run").write_text("work")
        raise ZeroDivisionError


def test_a_private_folder_goes_whatever_happens(tmp_path):
    path = tmp_path / "new" / "out.bam"
    (tmp_path / "new" / f".out.bam.{dead_process()}.part").mkdir(parents=True)
    with pytest.raises(ZeroDivisionError):
        use_and_fail(path)
    assert names(path.parent) == []
    with pytest.raises(UsageError, match="is a folder; give the name of a file to write"):
        use_and_fail(tmp_path)


def lines_of(seed, n=150_000):
    numbers = random.Random(seed)
    return b"".join(b"read%d\t%d\n" % (i, numbers.randrange(10**6)) for i in range(n))


def compressed(path, data, sizes):
    """What is in a file to which the data were written in pieces of these sizes, over and over."""
    with atomic_file(path) as file:
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
        assert compressed(tmp_path / "cut.gz", data, sizes) == whole


def test_compressed_bytes_do_not_depend_on_what_was_compressed_before_or_beside(tmp_path):
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
def test_files_that_end_where_a_member_does_or_hold_nothing(tmp_path, data):
    assert gzip.decompress(compressed(tmp_path / "a.gz", data, [1 << 21])) == data


def test_compressed_text_is_whole(tmp_path):
    with atomic_file(tmp_path / "t.txt.gz", "w") as file:
        for _ in range(30_000):
            file.write("äöü line\n")
    assert gzip.decompress((tmp_path / "t.txt.gz").read_bytes()).decode() == "äöü line\n" * 30_000


@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [
        (["out", None], [None, "in"]),
        (["-"], ["-"]),
        (["/dev/null", "/dev/null"], []),
        (["out"], ["in", "in"]),
    ],
)
def test_outputs_that_overwrite_nothing(outputs, inputs):
    check_outputs(outputs, inputs)


@pytest.mark.parametrize(
    ("outputs", "inputs"),
    [(["reads"], ["reads"]), (["./x/../reads"], ["reads"]), (["out", "out"], []), (["-", "-"], [])],
)
def test_outputs_that_overwrite_something(tmp_path, monkeypatch, outputs, inputs):
    monkeypatch.chdir(tmp_path)
    Path("reads").touch()
    Path("x").mkdir()
    with pytest.raises(UsageError) as caught:
        check_outputs(outputs, inputs)
    message = f"{outputs[-1]} is given twice: every file needs a name of its own"
    assert str(caught.value) == message


def test_an_output_that_links_to_an_input(tmp_path):
    (tmp_path / "reads").touch()
    (tmp_path / "link").symlink_to(tmp_path / "reads")
    with pytest.raises(UsageError, match="link is given twice"):
        check_outputs([tmp_path / "link"], [tmp_path / "reads"])


def test_files_appear_together(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b.gz"]
    with atomic_files(paths) as (first, second):
        first.write(b"1")
        second.write(b"2")
        assert not any(path.exists() for path in paths)
    assert paths[0].read_bytes() == b"1"
    assert gzip.decompress(paths[1].read_bytes()) == b"2"


def test_where_the_last_of_some_files_cannot_be_written_there_is_none(tmp_path):
    def write():
        with atomic_files([tmp_path / "first", tmp_path / "last"]) as (first, last):
            first.write(b"whole")
            last.write(b"x")
            # Closing is what fails: the bytes are still in memory.
            os.dup2(os.open("/dev/full", os.O_WRONLY), last.fileno())

    with pytest.raises(OSError, match="No space left"):
        write()
    assert os.listdir(tmp_path) == []
