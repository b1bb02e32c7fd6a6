"""No output overwrites an input or another output."""

from pathlib import Path

import pytest

from bwarp.errors import UsageError
from bwarp.io.atomic_output import check_outputs, table_format


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
    assert str(caught.value) == (
        f"{outputs[-1]}: the name is used by another file of this run: choose another output"
    )


def test_an_output_that_links_to_an_input(tmp_path):
    (tmp_path / "reads").touch()
    (tmp_path / "link").symlink_to(tmp_path / "reads")
    with pytest.raises(UsageError, match="link: the name is used by another file"):
        check_outputs([tmp_path / "link"], [tmp_path / "reads"])


@pytest.mark.parametrize(
    ("outputs", "inputs", "message"),
    [
        (["i/index.json"], ["i"], "i/index.json: lies in i"),
        (["i/a"], ["i/a/reads"], "i/a: contains i/a/reads"),
        (["out", "out/table"], [], "out/table: lies in out"),
        (["i/new", "i"], [], "i: contains i/new"),
    ],
)
def test_a_file_within_another(tmp_path, monkeypatch, outputs, inputs, message):
    monkeypatch.chdir(tmp_path)
    Path("i/a").mkdir(parents=True)
    Path("i/index.json").touch()
    check_outputs(["i/new"], ["i"])
    with pytest.raises(UsageError) as caught:
        check_outputs(outputs, inputs)
    assert str(caught.value) == f"{message}, which this run uses: choose another output"


def test_a_folder_to_write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    check_outputs(["out"], ["reads"], "d")
    with pytest.raises(UsageError, match="d: contains d/reads, which this run uses"):
        check_outputs([], ["d/reads"], "d")
    with pytest.raises(UsageError, match="d: contains d/table, which this run uses"):
        check_outputs(["d/table"], [], "d")


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("d", "d: is a folder: give the name of a file to write"),
        ("new/", "new/: is a folder: give the name of a file to write"),
        ("link", "link: is a folder: give the name of a file to write"),
        ("file/a/b", "file: is a file, not a folder: choose another output"),
        (
            "new/a/b",
            "new/a/b: no such folder new/a: create it, or choose another output",
        ),
    ],
)
def test_unwritable_outputs_are_reported_in_advance(tmp_path, monkeypatch, output, message):
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    Path("file").touch()
    Path("link").symlink_to("d")
    with pytest.raises(UsageError) as caught:
        check_outputs(["table", output], [])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("-", "tsv"),
        ("a.tsv", "tsv"),
        ("x/a.b.tsv.gz", "tsv"),
        ("a.bed", "bed"),
        ("a.bed.gz", "bed"),
        ("a.parquet", "parquet"),
    ],
)
def test_endings(path, expected):
    assert table_format(path) == expected


@pytest.mark.parametrize("path", ["a", "a.txt", "tsv", ".tsv", "a.gz", "a.parquet.gz", "a.tsv.bz2"])
def test_unknown_endings(path):
    with pytest.raises(UsageError) as caught:
        table_format(path)
    assert str(caught.value) == (
        f"{path}: the output must end in .tsv, .bed, .tsv.gz, .bed.gz or .parquet"
    )
