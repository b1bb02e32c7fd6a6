"""When CUDA is started while Python imports, with GPUs that are only files."""

import subprocess
import sys

import pytest

from bwarp.gpu import device_selection, early_start
from bwarp.gpu.device_selection import claim_gpu, is_free, release_gpu
from bwarp.gpu.early_start import begin_cuda

UUIDS = [f"GPU-0000000{i}-aaaa-bbbb-cccc-dddddddddddd" for i in range(2)]


@pytest.fixture
def begins(tmp_path, monkeypatch):
    """A function: whether CUDA is started for a command, where there are so many GPUs."""
    for name in ("CUDA_VISIBLE_DEVICES", device_selection.HELD, "NUMBA_ENABLE_CUDASIM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(device_selection, "_locks", [])
    started = []
    monkeypatch.setattr(early_start, "_start", lambda: started.append("CUDA"))

    def begin(subcommand="map", words=("-o", "out.bam"), gpus=1):
        driver, devices = tmp_path / "driver", tmp_path / "dev"
        devices.mkdir(exist_ok=True)
        for i in range(gpus):
            (driver / f"{i}").mkdir(parents=True, exist_ok=True)
            (driver / f"{i}" / "information").write_text(
                f"GPU UUID: \t {UUIDS[i]}\nDevice Minor: \t {i}\n"
            )
            (devices / f"nvidia{i}").touch()
        started.clear()
        thread = begin_cuda(subcommand, words, driver, devices, tmp_path)
        if thread is not None:
            thread.join()
        return started == ["CUDA"]

    yield begin
    release_gpu()


def test_it_is_started_for_a_program_that_uses_it(begins):
    assert begins()
    assert begins("pairs", ["--backend", "cuda", "-o", "out.tsv"])
    assert begins("index", ["--backend=auto", "genome.fa"])


@pytest.mark.parametrize(
    "words",
    [["--backend", "cpu"], ["--backend=cpu", "-o", "a.bam"], ["-h"], ["-o", "a", "--help"],
     ["--version"], []],
    ids=" ".join,
)  # fmt: skip
def test_it_is_not_where_nobody_asks_for_it(begins, words):
    assert not begins(words=words)


@pytest.mark.parametrize("subcommand", ["simulate-reads", "merge", "doctor", None])
def test_it_is_not_for_a_program_without_kernels(begins, subcommand):
    assert not begins(subcommand)


def test_it_is_not_where_there_is_none_or_one_has_to_be_chosen(begins, monkeypatch):
    assert not begins(gpus=0)
    assert not begins(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert begins(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not begins(gpus=2)


def test_it_is_not_where_numba_simulates_one(begins, monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    assert not begins()


def test_it_is_not_where_another_program_holds_it(begins, tmp_path, monkeypatch):
    assert begins()
    assert claim_gpu(print, tmp_path, tmp_path / "driver", tmp_path / "dev") == UUIDS[0]
    assert not is_free(UUIDS[0], tmp_path)
    # A child of who holds it shares it.
    assert begins()
    monkeypatch.delenv(device_selection.HELD)
    assert not begins()
    release_gpu()
    assert is_free(UUIDS[0], tmp_path)
    assert is_free(UUIDS[0], tmp_path)
    assert begins()


def test_a_machine_without_a_driver_is_left_to_who_explains_that():
    early_start._start()


def test_nothing_heavy_is_imported():
    check = (
        "import sys, bwarp.gpu.early_start; "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba')))"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
