"""The names that `import bwarp` provides, and modules that it does not import."""

import subprocess
import sys

import pytest

import bwarp

HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pysam", "Bio")


def imported_by(code) -> set[str]:
    command = [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


def test_nothing_heavy_is_imported_before_it_is_used():
    assert imported_by("import bwarp; dir(bwarp); bwarp.InputError").isdisjoint(HEAVY)


@pytest.mark.parametrize("name", ["Index", "Mapper"])
def test_functions_without_frames_do_not_need_pandas(name):
    assert "pandas" not in imported_by(f"import bwarp; bwarp.{name}")


def test_every_name_is_there_and_is_listed_before_its_first_use():
    command = [sys.executable, "-c", "import bwarp; print(*dir(bwarp))"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    for name in bwarp.__all__:
        assert getattr(bwarp, name).__doc__
        assert name in listed


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Maper'"):
        bwarp.Maper  # noqa: B018
