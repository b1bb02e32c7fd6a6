"""Compiled code is stored under a digest of its sources, and only trusted code runs."""

import os
import shutil
import stat
import subprocess
import sys
import time

import pytest

from bwarp.runtime import compiled_code
from tests.helpers.programs.program_server import ProgramServer

CALL = """
import sys
sys.path.insert(0, sys.argv[1])
from bwarp.one import twice
print(twice(1), int('numba' not in sys.modules))
"""

ONE = """
from bwarp.runtime.compiled_code import compiled
from bwarp.two import step

@compiled
def twice(x):
    return step(step(x))
"""

TWO = """
from bwarp.runtime.compiled_code import inner

@inner
def step(x):
    return x + 1
"""


@pytest.fixture
def package(checkout, tmp_path):
    """Copy the package and add three modules, one of which calls a function of another."""
    folder = tmp_path / "copy" / "bwarp"
    (folder / "runtime").mkdir(parents=True)
    modules = (
        "compiled_code", "compiler", "lazy_function", "linking", "machine_code", "source_digest",
        "target", "type_text",
    )  # fmt: skip
    files = "__init__.py", "__init__.pyi", "runtime/__init__.py"
    for name in (*files, *(f"runtime/{module}.py" for module in modules)):
        shutil.copy(checkout / "bwarp" / name, folder / name)
    (folder / "two.py").write_text(TWO)
    (folder / "one.py").write_text(ONE)
    (folder / "three.py").write_text("")
    return folder


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    """Set the variables for folders for this test only."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def server():
    """Start a server whose programs can import Numba in no time."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("NUMBA_CACHE_DIR", raising=False)
        server = ProgramServer("tests.helpers.programs.hidden_numba:hide")
    yield server
    server.close()


@pytest.fixture
def call(server, tmp_path):
    """Return a function that runs code in a new process in which `bwarp` is the copy.

    It returns standard output and standard error.
    """

    def call(package, code=CALL, **environment) -> tuple[str, str]:
        script = tmp_path / "call.py"
        script.write_text(code)
        words, environment = [script, package.parent], os.environ | environment
        rc, out, err = server.run(words, environment=environment)
        assert rc == 0, err
        return out, err

    return call


@pytest.fixture
def run(call):
    """Return a function that calls `twice(1)` in a new process.

    It returns the result, and whether it ran without Numba, as 1 or 0.
    """

    def run(package, **environment) -> tuple[int, int]:
        answer, hits = call(package, **environment)[0].split()
        return int(answer), int(hits)

    return run


def files(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith("twice-"))


def test_a_function_is_compiled_once(package, run):
    assert run(package) == (3, 0)
    assert run(package) == (3, 1)


def test_an_edit_of_an_inlined_function_compiles_again(package, run):
    run(package)
    # Longer, because Python reuses bytecode of a file with the same length and second.
    edited = (package / "two.py").read_text().replace("+ 1", "+ 5  # more")
    (package / "two.py").write_text(edited)
    assert run(package) == (11, 0)


def test_other_names_of_the_fields_of_an_argument_compile_again(package, call):
    """The module of a named tuple need not be one that the function's module imports."""
    (package / "one.py").write_text(ONE.replace("step(step(x))", "step(x.a)"))
    code = CALL.replace("twice(1)", "twice(Pair(1, 5))").replace(
        "import twice", "import twice\nfrom bwarp.three import Pair"
    )
    pair = "from typing import NamedTuple\nclass Pair(NamedTuple):\n"
    for fields, answer in (("a: int; b: int", "2"), ("bb: int; a: int", "6")):
        (package / "three.py").write_text(f"{pair}    {fields}\n")
        assert call(package, code)[0] == f"{answer} 0\n"
        assert call(package, code)[0] == f"{answer} 1\n"


def test_an_edit_elsewhere_does_not(package, run):
    run(package)
    (package / "three.py").write_text("A = 1\n")
    assert run(package) == (3, 1)


def test_the_package_alone_does_not_import_numba(package, call):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import bwarp; print('numba' in sys.modules)"
    )
    assert call(package, code)[0] == "False\n"


def test_the_users_own_functions_are_cached_as_numba_does_it(package, tmp_path):
    (tmp_path / "own.py").write_text(
        "import bwarp.one, numba\n@numba.njit(cache=True)\ndef own(x):\n    return x\n"
    )
    code = "import sys; sys.path[:0] = [sys.argv[1], '.']\nimport own; print(own.own(1))"
    subprocess.run([sys.executable, "-c", code, package.parent], cwd=tmp_path, check=True)
    assert {path.suffix for path in (tmp_path / "__pycache__").iterdir()} == {
        ".nbc",
        ".nbi",
        ".pyc",
    }


def test_the_folder_is_where_the_environment_says(package, run, tmp_path):
    run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert files(tmp_path / "kept" / "bwarp")
    assert not (package / "__pycache__" / "compiled").exists()


def test_two_copies_of_the_same_code_share_a_cache(package, run, tmp_path):
    shutil.copytree(package.parent, tmp_path / "other")
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 0)
    other = tmp_path / "other" / "bwarp"
    assert run(other, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 1)


def test_a_package_that_cannot_be_written_uses_the_users_cache(package, monkeypatch, home):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert compiled_code._wanted_folder() == home / "bwarp"


def test_code_next_to_the_package_is_found_from_elsewhere(package, run, tmp_path):
    assert run(package) == (3, 0)
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 1)
    assert not files(tmp_path / "kept" / "bwarp")


def test_a_damaged_file_is_compiled_again(package, run):
    run(package)
    (file,) = files(package / "__pycache__" / "compiled")
    file.write_bytes(file.read_bytes()[:-1])
    assert run(package) == (3, 0)
    assert run(package) == (3, 1)


# A planted file: whoever may write it could add a pickle that executes anything.


def is_others(path):
    os.chown(path, 12345, 12345)


def is_open(path):
    path.chmod(path.stat().st_mode | stat.S_IWOTH)


def is_open_to_a_group(path):
    path.chmod(path.stat().st_mode | stat.S_IWGRP)


DISTRUSTED = [is_open, is_open_to_a_group, is_others] if os.geteuid() == 0 else [is_open]


@pytest.mark.parametrize("change", DISTRUSTED)
def test_a_file_that_others_may_write_is_not_loaded(package, run, change):
    run(package)
    (file,) = files(package / "__pycache__" / "compiled")
    change(file)
    assert run(package) == (3, 0)
    # It was replaced.
    assert run(package) == (3, 1)


@pytest.mark.parametrize("change", DISTRUSTED)
def test_a_folder_that_others_may_write_is_not_used(package, call, run, change, tmp_path, home):
    kept = tmp_path / "kept" / "bwarp"
    run(package, NUMBA_CACHE_DIR=str(kept.parent))
    before = files(kept)
    change(kept)
    out, said = call(package, NUMBA_CACHE_DIR=str(kept.parent))
    assert out == "3 0\n"
    why = "belongs to another user" if change is is_others else "can be written by others"
    assert said == f"compiled code is stored in {home}/bwarp: {kept} {why}\n"
    assert stat.S_IMODE((home / "bwarp").stat().st_mode) == 0o700
    assert call(package, NUMBA_CACHE_DIR=str(kept.parent)) == ("3 1\n", said)
    assert files(kept) == before


@pytest.mark.parametrize("change", DISTRUSTED)
def test_a_folder_beside_the_package_that_others_may_write_is_not_used(
    package, call, run, change, home
):
    run(package)
    change(package / "__pycache__" / "compiled")
    out, said = call(package)
    assert (out, said.count("\n")) == ("3 0\n", 1)
    assert files(home / "bwarp")


def test_a_folder_that_others_could_exchange_is_not_used(package, call, tmp_path, home):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    said = call(package, NUMBA_CACHE_DIR=str(shared))[1]
    assert said.endswith("can be replaced by others\n")
    # As in /tmp, where a folder belongs to its owner.
    shared.chmod(0o1777)
    assert call(package, NUMBA_CACHE_DIR=str(shared)) == ("3 0\n", "")
    assert stat.S_IMODE((shared / "bwarp").stat().st_mode) & 0o022 == 0


def test_a_link_is_not_followed(package, run, tmp_path):
    kept = tmp_path / "kept"
    run(package, NUMBA_CACHE_DIR=str(kept))
    (file,) = files(kept / "bwarp")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert run(package, NUMBA_CACHE_DIR=str(kept)) == (3, 0)


def test_others_may_not_write_with_any_umask(package, call):
    call(package, f"import os; os.umask(0o002)\n{CALL}")
    kept = package / "__pycache__" / "compiled"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o755
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.iterdir()} == {0o644}


def test_a_user_without_a_home_uses_a_private_folder(package, call, tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file" / "kept")
    out, said = call(package, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere)
    private = tmp_path / f"bwarp-{os.geteuid()}"
    assert out == "3 0\n"
    assert said == (
        f"compiled code is stored in {private}: {nowhere}/bwarp cannot be used (Not a directory)\n"
    )
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert call(package, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere) == ("3 1\n", said)


def test_functions_run_without_a_cache(package, call, tmp_path):
    (tmp_path / "file").write_text("")
    nowhere = str(tmp_path / "file" / "kept")
    (tmp_path / f"bwarp-{os.geteuid()}").write_text("")
    for _ in range(2):
        assert call(package, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere) == ("3 0\n", "")


def test_loaded_functions_can_be_inlined(package, call):
    (package / "four.py").write_text(
        "import numpy as np\nfrom bwarp.runtime.compiled_code import compiled\n"
        "@compiled\ndef twice(x):\n    return np.sqrt(x * x) + x\n"
        "@compiled\ndef thrice(x):\n    return twice(np.sort(x)) + x\n"
    )
    code = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np
from bwarp.four import twice, thrice
array = np.arange(5.0)
print(twice(1), twice(array).sum(), thrice(array).sum(), int('numba' not in sys.modules))
"""
    call(package, code.replace("thrice(array)", "array"))
    assert call(package, code)[0] == "2.0 20.0 30.0 0\n"
    assert call(package, code)[0] == "2.0 20.0 30.0 1\n"


def test_concurrent_compilations_for_different_types_do_not_collide(package, call):
    """Numba's own cache gives both the same number, so one gets the other's code."""
    code = """
import sys; sys.path.insert(0, sys.argv[1])
import numba
from bwarp.one import twice
twice.dispatcher.compile((numba.{0},))
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(package.parent / "kept")}
    both = [
        subprocess.Popen([sys.executable, "-c", code.format(kind), package.parent], env=environment)
        for kind in ("int64", "float64")
    ]
    assert [process.wait() for process in both] == [0, 0]
    check = CALL.replace("twice(1),", "twice(1), twice(1.5),")
    out, _ = call(package, check, NUMBA_CACHE_DIR=environment["NUMBA_CACHE_DIR"])
    assert out == "3 3.5 1\n"


def test_code_unused_for_30_days_is_removed(package, call, run):
    run(package)
    kept = package / "__pycache__" / "compiled"
    (file,) = files(kept)
    days = {"old": 31, "new": 29, ".lock": 31}
    for name in days:
        (kept / name).write_text("")
    for path in kept.iterdir():
        os.utime(path, (0, time.time() - days.get(path.name, 31) * 86400))
    # It was used, so its time is new.
    assert run(package) == (3, 1)
    assert time.time() - file.stat().st_mtime < 60
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from bwarp.runtime import compiled_code; compiled_code.remove_unused()"
    )
    call(package, code)
    assert {path.name.partition("-")[0] for path in kept.iterdir()} >= {"twice", "new", ".lock"}
    assert not (kept / "old").exists()
