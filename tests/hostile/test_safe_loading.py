"""No content of a file is ever executed: no pickles, no eval, YAML without objects."""

import ast
import json
import os
import stat
import zlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from bwarp.errors import InputError
from bwarp.index.description import canonical
from bwarp.io.atomic_output import atomic_file, atomic_folder, private_folder
from bwarp.io.chunk_files import checked_array, map_file, save_with_sums, text_sum
from tests.helpers.programs.programs_here import run_here

FORBIDDEN_NAMES = {"eval", "exec", "compile", "__import__"}
#: Compiled code is pickled, in files that only the user may write.
PICKLES_CODE = {
    "bwarp/gpu/launch.py",
    "bwarp/runtime/compiled_code.py",
    "bwarp/runtime/compiler.py",
    "bwarp/runtime/linking.py",
    "bwarp/runtime/machine_code.py",
}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"}


def sources(checkout):
    folders = ("bwarp", "scripts", "benchmarks")
    return [path for folder in folders for path in (checkout / folder).rglob("*.py")]


def test_no_source_runs_what_it_reads(checkout):
    for path in sources(checkout):
        for node in ast.walk(ast.parse(path.read_text())):
            where = f"{path}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Import):
                imported = {alias.name for alias in node.names}
                allowed = {"pickle"} if str(path.relative_to(checkout)) in PICKLES_CODE else set()
                assert not imported & FORBIDDEN_MODULES - allowed, where
            if isinstance(node, ast.ImportFrom):
                assert node.module not in FORBIDDEN_MODULES, where
            if isinstance(node, ast.Call):
                called = node.func
                if isinstance(called, ast.Name):
                    assert called.id not in FORBIDDEN_NAMES, where
                for keyword in node.keywords:
                    assert keyword.arg != "allow_pickle" or keyword.value.value is False, where
                    assert keyword.arg != "shell" or keyword.value.value is False, where
                if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
                    name = f"{called.value.id}.{called.attr}"
                    assert name not in {"yaml.load", "yaml.unsafe_load", "os.system"}, where
                    if name == "yaml.compose":
                        loaders = [keyword.value.attr for keyword in node.keywords]
                        assert loaders == ["SafeLoader"], where


def test_rules_load_yaml_safely(checkout):
    for path in (checkout / "workflow").rglob("*.smk"):
        for line in path.read_text().splitlines():
            assert "yaml.load" not in line or "SafeLoader" in line
            assert "pickle" not in line
            assert "eval(" not in line


class Mischief:
    def __reduce__(self):
        return (os.mkdir, ("made-by-a-pickle",))


def test_an_array_with_a_pickle_in_it_is_not_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    array = np.array([Mischief()], object)
    np.save(tmp_path / "good.npy", np.arange(4))
    recorded = save_with_sums(tmp_path / "x.npy", np.arange(4))
    np.save(tmp_path / "x.npy", array, allow_pickle=True)
    folder = os.open(tmp_path, os.O_RDONLY)
    with pytest.raises(InputError):
        checked_array(
            tmp_path / "x.npy", map_file(tmp_path / "x.npy", folder), recorded,
            np.dtype(np.int64), (4,),
        )  # fmt: skip
    os.close(folder)
    with pytest.raises(ValueError, match="pickle"):
        np.load(tmp_path / "x.npy")
    assert not (tmp_path / "made-by-a-pickle").exists()


def test_a_prepared_database_with_a_pickle_in_it(tmp_path):
    (tmp_path / "p.fa").write_text(">p\nMKV\n")
    prepare = ("index_database", tmp_path / "p.fa", "-o", tmp_path / "d")
    assert run_here(*prepare, folder=tmp_path).rc == 0
    np.save(tmp_path / "d/codes.npy", np.array([Mischief()], object), allow_pickle=True)
    text = (tmp_path / "d/codes.npy").read_bytes()
    description = json.loads((tmp_path / "d/database.json").read_text())
    description["files"]["codes.npy"] = {"bytes": len(text), "crc32": [f"{zlib.crc32(text):08x}"]}
    del description["sum"]
    description["sum"] = text_sum(canonical(description))
    (tmp_path / "d/database.json").write_text(json.dumps(description))
    command = ("--queries", tmp_path / "p.fa", "--database", tmp_path / "d", "-o", tmp_path / "o")
    done = run_here("search_database", *command, folder=tmp_path)
    assert done.rc == 1
    assert done.last_line == (
        f"search_database.py: error: {tmp_path}/d/codes.npy: the file does not contain an array "
        "of type uint8 and shape (3,): make it again with bwarp search-index"
    )
    assert not Path("made-by-a-pickle").exists()


def test_yaml_with_objects_is_refused():
    with pytest.raises(yaml.YAMLError):
        yaml.safe_load("reference: !!python/object/apply:os.mkdir [made-by-yaml]")


def modes(folder):
    """Return the permissions of everything in a folder, by name."""
    return {path.name: stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}


def test_unfinished_outputs_are_private(tmp_path):
    """Others cannot read unfinished outputs, only finished ones."""
    mask = os.umask(0o022)
    try:
        with atomic_file(tmp_path / "file") as file:
            file.write(b"x")
            assert set(modes(tmp_path).values()) == {0o600}
        with atomic_folder(tmp_path / "folder", ["index.json"]) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o700
            (part / "index.json").write_text("{}")
        with private_folder(tmp_path / "out") as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o700
        assert modes(tmp_path) == {"file": 0o644, "folder": 0o755, "index.json": 0o644}
        os.umask(0o077)
        with atomic_file(tmp_path / "mine.gz") as file:
            file.write(b"x")
        with atomic_folder(tmp_path / "ours", ["index.json"]):
            pass
        assert modes(tmp_path)["mine.gz"] == 0o600
        assert modes(tmp_path)["ours"] == 0o700
    finally:
        os.umask(mask)
