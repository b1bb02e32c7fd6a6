"""Which GPU a program takes if several run at once, with files instead of GPUs."""

import os
import subprocess
import sys

import pytest

from bwarp.gpu import device as device_selection
from bwarp.gpu.device import claim_gpu, installed_gpus, visible_gpus

UUIDS = [f"GPU-0000000{i}-aaaa-bbbb-cccc-dddddddddddd" for i in range(3)]

PROGRAM = """
import runpy
import sys
from pathlib import Path
module, *folders = map(Path, sys.argv[2:])
claim_gpu = runpy.run_path(str(module))["claim_gpu"]  # without the package: that imports Numba
shared = sys.argv[1] == "shared"
print(claim_gpu(lambda line: print(line, flush=True), *folders, shared=shared), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    for name in ("CUDA_VISIBLE_DEVICES", device_selection.HELD):
        monkeypatch.setenv(name, "")  # so that it is restored after the test
        monkeypatch.delenv(name)
    locks = []
    monkeypatch.setattr(device_selection, "_locks", locks)
    yield
    device_selection.release_gpu()


@pytest.fixture
def gpus(tmp_path):
    """Return a function that makes GPUs and returns the folders for claim_gpu."""

    def make(count, missing=()):
        locks, driver, devices = (tmp_path / name for name in ("locks", "driver", "dev"))
        for folder in (locks, driver, devices):
            folder.mkdir()
        for i in range(count):
            slot = driver / f"0000:{10 * i:02x}:00.0"
            slot.mkdir()
            (slot / "information").write_text(
                f"Model: \t\t NVIDIA H200\nGPU UUID: \t {UUIDS[i]}\nDevice Minor: \t {i}\n"
            )
            if i not in missing:
                (devices / f"nvidia{i}").touch()
        return locks, driver, devices

    return make


@pytest.fixture
def programs():
    """Return a function that starts programs that claim a GPU: each, and its first line."""
    started = []

    def start(folders, count, how="alone"):
        for _ in range(count):
            process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM, how, device_selection.__file__, *map(str, folders)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            started.append((process, process.stdout.readline().strip()))
        return started

    yield start
    for process, _ in started:
        process.communicate("\n", timeout=60)


def test_programs_at_once_take_a_gpu_each_and_the_next_waits(gpus, programs):
    started = programs(gpus(2), 3)
    assert [said for _, said in started] == [
        *UUIDS[:2],
        "all 2 GPUs are in use by other bwarp programs: waiting",
    ]
    (_, (second, _), (third, _)) = started
    second.kill()  # a killed program also releases its GPU
    assert third.stdout.readline().strip() == UUIDS[1]


def test_steps_share_a_gpu_and_other_programs_wait(gpus, programs):
    folders = gpus(2)
    started = programs(folders, 3, "shared")
    started = programs(folders, 1)
    # Steps prefer a GPU without steps.
    assert [said for _, said in started] == [
        *UUIDS[:2],
        UUIDS[0],
        "all 2 GPUs are in use by other bwarp programs: waiting",
    ]
    *steps, (other, _) = started
    steps[0][0].kill()
    steps[2][0].kill()
    assert other.stdout.readline().strip() == UUIDS[0]
    assert programs(folders, 1, "shared")[-1][1] == UUIDS[1]


def test_cuda_sees_only_the_claimed_gpu(gpus):
    folders = gpus(2)
    assert claim_gpu(pytest.fail, *folders) == UUIDS[0]
    assert os.environ["CUDA_VISIBLE_DEVICES"] == UUIDS[0]
    assert claim_gpu(pytest.fail, *folders) is None


def test_several_gpus_are_taken_as_far_as_they_are_free(gpus, programs):
    folders = gpus(3)
    (_holder, first), *_ = programs(folders, 1)
    assert first == UUIDS[0]
    assert claim_gpu(pytest.fail, *folders, most=3) == ",".join(UUIDS[1:])
    assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(UUIDS[1:])


def test_no_more_gpus_are_taken_than_are_wanted(gpus):
    assert claim_gpu(pytest.fail, *gpus(3), most=2) == ",".join(UUIDS[:2])


def test_a_gpu_can_be_given_back(gpus, programs):
    folders = gpus(1)
    assert claim_gpu(pytest.fail, *folders) == UUIDS[0]
    for _ in range(2):
        device_selection.release_gpu()
    assert programs(folders, 1)[0][1] == UUIDS[0]


def test_a_single_gpu_is_locked_and_named(gpus, programs):
    locks, driver, devices = gpus(1)
    assert claim_gpu(pytest.fail, locks, driver, devices) == UUIDS[0]
    assert "CUDA_VISIBLE_DEVICES" not in os.environ
    assert programs((locks, driver, devices), 1)[0][1] == "None"  # a child shares it
    assert [path.name for path in locks.iterdir()] == [f"bwarp-{UUIDS[0]}.lock"]


def test_a_gpu_that_somebody_chose_is_taken_without_a_lock(gpus, monkeypatch):
    locks, driver, devices = gpus(3)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2")
    assert claim_gpu(pytest.fail, locks, driver, devices) is None
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"
    assert list(locks.iterdir()) == []


def test_of_several_gpus_that_somebody_chose_one_is_taken(gpus, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 1")
    assert claim_gpu(pytest.fail, *gpus(3)) == "2"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "2"


@pytest.mark.parametrize(
    ("named", "visible"),
    [
        ("", []),
        ("-1", []),
        ("0,-1,1", ["0"]),
        ("NoDevFiles", []),
        (f"{UUIDS[0]},1", [UUIDS[0], "1"]),
        ("MIG-GPU-5c89/3/0,MIG-ab12", ["MIG-GPU-5c89/3/0", "MIG-ab12"]),
    ],
)
def test_the_names_in_cuda_visible_devices(named, visible, tmp_path):
    assert visible_gpus({"CUDA_VISIBLE_DEVICES": named}, tmp_path, tmp_path) == visible


def test_gpus_that_cannot_be_opened_belong_to_other_containers(gpus):
    _, driver, devices = gpus(3, missing=(0, 2))
    assert installed_gpus(driver, devices) == [UUIDS[1]]


def test_without_a_driver_there_is_nothing_to_choose(tmp_path):
    assert claim_gpu(pytest.fail, tmp_path, tmp_path / "none", tmp_path / "none") is None


def test_a_lock_that_cannot_be_created_is_not_an_error(gpus, tmp_path):
    _, driver, devices = gpus(2)
    assert claim_gpu(pytest.fail, tmp_path / "none", driver, devices) is None
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_links_in_place_of_locks_are_not_followed(gpus, tmp_path):
    locks, driver, devices = gpus(1)
    (locks / f"bwarp-{UUIDS[0]}.lock").symlink_to(tmp_path / "elsewhere")
    assert claim_gpu(pytest.fail, locks, driver, devices) is None
    assert not (tmp_path / "elsewhere").exists()
