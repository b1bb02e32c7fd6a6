"""The manifest of a run: checksums as from md5sum, versions, and given values."""

import json
import subprocess

import pytest

from bwarp import __version__
from bwarp.report.manifest import manifest, md5_of


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder/deep").mkdir(parents=True)
    for number, name in enumerate(("b", "a", "folder/z", "folder/deep/y")):
        (tmp_path / name).write_bytes(b"x" * (number * 100_000))
    return tmp_path


@pytest.mark.parametrize("threads", [1, 3])
def test_files_and_folders(files, threads):
    made = manifest(["b", "folder", "b"], ["a"], {"k": [1]}, threads)
    assert made["parameters"] == {"k": [1]}
    assert made["versions"]["bwarp"] == __version__
    assert {"python", "numpy", "pysam"} <= set(made["versions"])
    names = ["b", "folder/deep/y", "folder/z"]
    said = subprocess.run(["md5sum", *names, "a"], capture_output=True, text=True, check=True)
    sums = dict(reversed(line.split()) for line in said.stdout.splitlines())
    assert made["inputs"] == [
        {"path": name, "bytes": (files / name).stat().st_size, "md5": sums[name]} for name in names
    ]
    assert made["outputs"] == [{"path": "a", "bytes": 100_000, "md5": md5_of("a")}]


def test_the_program(run_program, files):
    arguments = ("--inputs", "b", "--outputs", "a", "folder", "-o", "m.json")
    done = run_program("write_manifest.py", *arguments, "--parameters", '{"n": 3}', cwd=files)
    assert done == (0, "", "")
    made = json.loads((files / "m.json").read_text())
    assert made["parameters"] == {"n": 3}
    assert [file["path"] for file in made["outputs"]] == ["a", "folder/deep/y", "folder/z"]
    for text in ("{", "[]", "3"):
        done = run_program("write_manifest.py", *arguments, "--parameters", text, cwd=files)
        assert done == (
            2, "", "write_manifest.py: error: --parameters is not a JSON object: write one such as "
            '{"mode": "local"}\n',
        )  # fmt: skip
