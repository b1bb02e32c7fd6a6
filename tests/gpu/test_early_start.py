"""When CUDA is started during imports, with files instead of GPUs."""

import importlib.util
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bwarp.gpu import device as device_selection
from bwarp.gpu import device as early_start
from bwarp.gpu.device import HELD, begin_cuda, claim_gpu, give_up_cuda, release_gpu

UUIDS = [f"GPU-0000000{i}-aaaa-bbbb-cccc-dddddddddddd" for i in range(2)]


@pytest.fixture
def begins(tmp_path, monkeypatch):
    """Return a function that tells whether CUDA is started for a command, given a number of GPUs.

    The GPU is free again after each call.
    """
    for name in ("CUDA_VISIBLE_DEVICES", HELD, *early_start._NO_CUDA):
        monkeypatch.setenv(name, "")  # so that it is restored after the test
        monkeypatch.delenv(name)
    monkeypatch.setattr(device_selection, "_locks", [])
    monkeypatch.setattr(early_start, "_thread", None)
    monkeypatch.setattr(early_start, "_libraries", [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    given_up = []
    library = SimpleNamespace(cuDevicePrimaryCtxRelease=given_up.append)
    monkeypatch.setattr(early_start, "_start", lambda: early_start._libraries.append(library))

    def begin(subcommand="map", words=("-o", "out.bam"), gpus=1, keep=False):
        driver, devices = tmp_path / "driver", tmp_path / "dev"
        devices.mkdir(exist_ok=True)
        for i in range(gpus):
            (driver / f"{i}").mkdir(parents=True, exist_ok=True)
            (driver / f"{i}" / "information").write_text(
                f"GPU UUID: \t {UUIDS[i]}\nDevice Minor: \t {i}\n"
            )
            (devices / f"nvidia{i}").touch()
        begin_cuda(subcommand, words, driver, devices, tmp_path)
        if keep:
            return early_start._thread is not None
        given_up.clear()
        give_up_cuda()
        return given_up == [0]

    yield begin
    release_gpu()


def test_it_is_started_for_a_program_that_uses_it(begins):
    assert begins()
    assert begins("pairs", ["--backend", "cuda", "-o", "out.tsv"])
    assert begins("index", ["--backend=auto", "genome.fa"])


@pytest.mark.parametrize(
    "words",
    [["--backend", "cpu"], ["--backend=cpu", "-o", "a.bam"], ["-h"], ["-o", "a", "--help"],
     ["--version"], ["index", "--verify"], []],
    ids=" ".join,
)  # fmt: skip
def test_it_is_not_started_without_a_request(begins, words):
    assert not begins(words=words)


@pytest.mark.parametrize("subcommand", ["simulate-reads", "merge", "doctor", "mems", None])
def test_it_is_not_started_for_a_program_without_gpus(begins, subcommand):
    assert not begins(subcommand)


def test_it_is_not_started_without_a_gpu_or_with_a_choice_of_gpus(begins, monkeypatch):
    assert not begins(gpus=0)
    assert not begins(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert begins(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not begins(gpus=2)


@pytest.mark.parametrize("name", early_start._NO_CUDA)
def test_it_is_not_started_if_numba_must_not_use_gpus(begins, monkeypatch, name):
    monkeypatch.setenv(name, "1")
    assert not begins()


def test_it_is_not_started_without_numba_cuda(begins, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not begins()


def test_the_gpu_is_held_until_it_is_released(begins, tmp_path):
    assert begins(keep=True)
    assert os.environ[HELD] == UUIDS[0]
    folders = tmp_path, tmp_path / "driver", tmp_path / "dev"
    assert claim_gpu(pytest.fail, *folders) is None
    give_up_cuda()
    assert HELD not in os.environ
    assert claim_gpu(pytest.fail, *folders) == UUIDS[0]


def test_it_is_not_started_if_another_program_holds_the_gpu(begins, tmp_path, monkeypatch):
    assert begins()
    assert claim_gpu(pytest.fail, tmp_path, tmp_path / "driver", tmp_path / "dev") == UUIDS[0]
    # A child of the process that holds a GPU shares it.
    assert begins(keep=True)
    monkeypatch.setattr(early_start, "_thread", None)
    monkeypatch.delenv(HELD)
    assert not begins()


def test_steps_of_allmap_share_the_gpu(begins, tmp_path, monkeypatch):
    folders = tmp_path, tmp_path / "driver", tmp_path / "dev"
    assert begins("seed-reads", keep=True)
    for subcommand, is_started in (("map", False), ("filter-candidates", True)):
        monkeypatch.setattr(early_start, "_thread", None)
        monkeypatch.delenv(HELD, raising=False)
        assert begins(subcommand, keep=True) == is_started
    release_gpu()
    assert claim_gpu(pytest.fail, *folders) == UUIDS[0]


def test_errors_are_left_to_the_user_of_the_gpu(begins, monkeypatch):
    def refuse(*_):
        raise PermissionError("/proc/driver/nvidia/gpus")

    monkeypatch.setattr(early_start, "claim_only_gpu", refuse)
    assert not begins()


def test_a_missing_driver_is_reported_elsewhere():
    early_start._start()
    assert not early_start._libraries


def test_nothing_heavy_is_imported():
    check = (
        "import sys, bwarp.gpu.device; "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba')))"
    )
    subprocess.run([sys.executable, "-c", check], check=True)
