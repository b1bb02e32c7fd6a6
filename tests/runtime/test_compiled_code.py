"""Compiled functions are kept under a digest of the code that they were made of."""

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
from numba.core.caching import IndexDataCacheFile

from bwarp.runtime import compiled_code

MODULES = ("code_file", "compiled_code", "inner_functions", "kept_functions", "source_digest")

CALL = """
import sys
sys.path.insert(0, sys.argv[1])
from bwarp.one import twice
print(twice(1), sum(twice.stats.cache_hits.values()))
"""


@pytest.fixture
def package(checkout, tmp_path):
    """A copy of the package with three modules of its own: one compiles in a function of two."""
    folder = tmp_path / "copy" / "bwarp"
    (folder / "runtime").mkdir(parents=True)
    for name in ("__init__.py", *(f"runtime/{name}.py" for name in MODULES)):
        shutil.copy(checkout / "bwarp" / name, folder / name)
    (folder / "runtime" / "__init__.py").write_text("")
    (folder / "two.py").write_text("import numba\n@numba.njit\ndef step(x):\n    return x + 1\n")
    (folder / "one.py").write_text(
        "import numba\nfrom bwarp.two import step\n"
        "@numba.njit(cache=True)\ndef twice(x):\n    return step(step(x))\n"
    )
    (folder / "three.py").write_text("")
    return folder


def run(package, **environment) -> tuple[int, int]:
    """The answer of `twice(1)` in a new process, and how often it was found compiled."""
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(package.parent)],
        env=clean | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    answer, hits = done.stdout.split()
    return int(answer), int(hits)


def test_a_function_is_compiled_once(package):
    assert run(package) == (3, 0)
    assert run(package) == (3, 1)


def test_an_edit_of_what_was_compiled_in_compiles_again(package):
    run(package)
    # Longer: Python takes its bytecode of a file as long and of the same second for that of today.
    edited = (package / "two.py").read_text().replace("+ 1", "+ 5  # more")
    (package / "two.py").write_text(edited)
    assert run(package) == (11, 0)


def test_numba_may_be_imported_before(package):
    early = ["-c", f"import numba\n{CALL}", str(package.parent)]
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    subprocess.run([sys.executable, *early], env=clean, check=True, stdout=subprocess.DEVNULL)
    assert run(package) == (3, 1)


def test_the_package_by_itself_does_not_import_numba(package):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import bwarp; print('numba' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(package.parent)]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"False\n"


def test_an_edit_elsewhere_does_not(package):
    run(package)
    (package / "three.py").write_text("A = 1\n")
    assert run(package) == (3, 1)


def test_the_folder_is_where_the_environment_says(package, tmp_path):
    run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
    assert (tmp_path / "kept" / "cpu.code").exists()
    assert not (package / "__pycache__" / "compiled").exists()


def test_two_copies_of_the_same_code_share_what_is_kept(package, tmp_path):
    shutil.copytree(package.parent, tmp_path / "other")
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 0)
    other = tmp_path / "other" / "bwarp"
    assert run(other, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 1)


def test_a_package_that_cannot_be_written_uses_the_users_cache(package, monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert compiled_code._parent_folder() == tmp_path / "cache" / "bwarp"


def test_what_lies_beside_the_package_is_found_from_elsewhere(package, tmp_path):
    assert run(package) == (3, 0)
    before = (package / "__pycache__/compiled/cpu.code").read_bytes()
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "kept")) == (3, 1)
    assert (package / "__pycache__/compiled/cpu.code").read_bytes() == before


def test_where_nothing_can_be_kept_functions_run_all_the_same(package, tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "file" / "kept")) == (3, 0)


def said(code: str, package) -> str:
    """What a new process prints, in which `bwarp` is the copy."""
    clean = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    start = f"import sys\nsys.path.insert(0, {str(package.parent)!r})\n"
    command = [sys.executable, "-c", start + code]
    return subprocess.run(command, env=clean, capture_output=True, text=True, check=True).stdout


LOADED_AND_COMPILED = """
import numpy as np
from bwarp.four import twice, thrice
array = np.arange(5.0)
print(twice(1), twice(array).sum(), thrice(array).sum(), sum(thrice.stats.cache_hits.values()))
"""


def test_what_is_loaded_can_be_compiled_into_another(package):
    """Of a function that is loaded, LLVM's code is read when it is needed."""
    (package / "four.py").write_text(
        "import numba\nimport numpy as np\n"
        "@numba.njit(cache=True)\ndef twice(x):\n    return np.sqrt(x * x) + x\n"
        "@numba.njit(cache=True)\ndef thrice(x):\n    return twice(np.sort(x)) + x\n"
    )
    said(LOADED_AND_COMPILED.replace("thrice(array)", "array"), package)
    assert said(LOADED_AND_COMPILED, package) == "2.0 20.0 30.0 0\n"
    assert said(LOADED_AND_COMPILED, package) == "2.0 20.0 30.0 1\n"


def test_a_numba_that_is_otherwise_inside_loads_as_it_does(package):
    assert run(package) == (3, 0)
    for change in (
        "del kept_functions._LoadedLibrary._get_module_for_linking\n"
        "kept_functions._LoadedLibrary.__init__ = None\n",
        "kept_functions.Environment = None",
        "kept_functions.nrt = None",
    ):
        call = "from bwarp.one import twice\nprint(twice(1), sum(twice.stats.cache_hits.values()))"
        code = f"from bwarp.runtime import kept_functions\n{change}\n{call}"
        assert said(code, package) == "3 1\n"


#: Both compile in the same functions of Numba's own.
SORTED = """
import numba
import numpy as np

@numba.njit(cache=True)
def ranks(values):
    order = np.empty(len(values), np.int64)
    for rank in range(len(values)):
        order[rank] = np.sum(values < values[rank])
    return order - order.min()

@numba.njit(cache=True)
def lowest(values):
    return ranks(values)[::2].min() + np.sum(values > 1) + np.empty(1, np.int64).size
"""


def test_loading_leaves_numbas_own_functions_and_runtime_till_it_compiles(package):
    (package / "five.py").write_text(SORTED)
    load = """
import numpy as np
from numba.core.runtime import rtsys
from bwarp.five import lowest, ranks
values = np.array([3.0, 1.0, 2.0])
print(ranks(values), sum(ranks.stats.cache_hits.values()))
def is_set_up():
    return "numba.np.arrayobj" in sys.modules, rtsys._init
"""
    loaded_only = f"{load}print(*is_set_up())"
    said(loaded_only, package)
    assert said(loaded_only, package) == "[2 0 1] 1\nFalse False\n"
    then = "print(lowest(values), sum(lowest.stats.cache_hits.values()), *is_set_up())\n"
    memory = "print(rtsys.meminfo_alloc(80).refcount, rtsys.library.name)"
    assert said(load + then + memory, package) == "[2 0 1] 1\n4 0 True True\n1 nrt\n"
    # It is kept, too, with the names of modules that were not imported when it was loaded.
    assert said(load + then, package) == "[2 0 1] 1\n4 1 False False\n"


FAILING = """
import numba
import numpy as np

@numba.njit(cache=True)
def fail(kind, values):
    if kind == 0:
        return values.min()
    if kind == 1:
        np.zeros(3)[:] = values[:2]
    if kind == 2:
        return 1 // len(values)
    if kind == 3:
        raise ValueError("so many", len(values), values[0])
    if kind == 4:
        return np.zeros(-len(values))[0]
    if kind == 5:
        return np.arange(4).reshape(len(values), 3).sum()
    return 0
"""


def test_a_loaded_function_raises_what_a_compiled_one_does(package):
    (package / "six.py").write_text(FAILING)
    code = """
import numpy as np
from bwarp.six import fail
for kind, length in enumerate((0, 2, 0, 2, 2, 2)):
    try:
        print(fail(kind, np.arange(float(length))))
    except Exception as error:
        print(repr(error))
print(sum(fail.stats.cache_hits.values()))
"""
    compiled, loaded = (said(code, package).splitlines() for _ in range(2))
    assert compiled[:-1] == loaded[:-1]
    assert (compiled[-1], loaded[-1]) == ("0", "1")
    kinds = ["ValueError"] * 2 + ["ZeroDivisionError"] + ["ValueError"] * 3
    assert [line.partition("(")[0] for line in loaded[:-1]] == kinds
    assert loaded[3] == "ValueError('so many', 2, 0.0)"


def test_two_that_save_at_a_time_get_names_of_their_own(monkeypatch, tmp_path):
    class CacheFile(IndexDataCacheFile):
        """Numba's, saving one at a time."""

    compiled_code.save_one_at_a_time(CacheFile)
    one, two = (CacheFile(str(tmp_path), "function", "stamp") for _ in range(2))
    load, other = one._load_index, threading.Thread(target=two.save, args=("float", "of floats"))

    def load_while_the_other_saves():
        index = load()
        other.start()
        other.join(0.5)
        return index

    monkeypatch.setattr(one, "_load_index", load_while_the_other_saves)
    one.save("int", "of ints")
    other.join()
    monkeypatch.undo()
    assert (one.load("int"), one.load("float")) == ("of ints", "of floats")


def test_folders_of_kernels_unused_for_a_week_are_removed(package):
    kept = package / "__pycache__" / "compiled"
    for name, days in (("cuda-old", 8), ("cuda-new", 6)):
        (kept / name).mkdir(parents=True)
        os.utime(kept / name, (0, time.time() - days * 86400))
    run(package)
    assert {folder.name for folder in kept.iterdir()} == {"cpu.code", "cuda-new"}
