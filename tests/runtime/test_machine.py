"""The output of the doctor for all kinds of machines, most of them simulated by files."""

import importlib.metadata
import os
from dataclasses import replace
from pathlib import Path

import pytest

from bwarp.runtime.machine import Gpu, Machine, diagnose, gather

HEALTHY = Machine(
    cores=16, all_cores=64, memory=128 * 10**9, free_memory=9_500_000_000,
    free_disk=2 * 10**12, vectors="avx2",
    packages={"numpy": "2.4.6", "numba": "0.68.1", "pysam": "0.24.1", "snakemake": "9.27.1",
              "numba-cuda": "0.30.4", "multiqc": "1.35",
              "pyarrow": "26.0", "snakemake-executor-plugin-slurm": "2.8"},
    cuda_parts=13, nvidia_gpus=1, driver="580.65.06", denied=(), visible=None,
    gpus=(Gpu("NVIDIA H200", 143_771, 143_000, (9, 0)),), problem=None, by_make=True,
)  # fmt: skip

NO_DRIVER = replace(HEALTHY, driver=None, gpus=(), problem="no NVIDIA driver or GPU is visible")


def advice(machine):
    return {f.what: f.advice for f in diagnose(machine) if f.advice}


def found(machine, what):
    return [finding.found for finding in diagnose(machine) if finding.what == what]


def test_a_healthy_machine_needs_no_advice():
    assert advice(HEALTHY) == {}
    assert found(HEALTHY, "gpu") == ["NVIDIA H200, 140 GiB (140 free), compute capability 9.0"]
    assert found(HEALTHY, "processor") == ["16 of 64 cores can be used, vectors: avx2"]
    assert found(HEALTHY, "memory") == [
        "128 GB, 9.5 GB free; building an index takes 5 bytes per base: 16 GB for a human genome"
    ]
    last = diagnose(HEALTHY)[-1]
    assert (last.what, last.found) == (
        "backend",
        "cuda: a GPU can be used, and --backend auto uses it",
    )


def test_a_missing_gpu_is_not_a_problem():
    machine = replace(NO_DRIVER, nvidia_gpus=0)
    assert advice(machine) == {}
    assert found(machine, "gpu") == ["no NVIDIA GPU, and no driver"]
    assert found(machine, "backend") == ["cpu: no NVIDIA driver or GPU is visible"]


def test_a_gpu_without_a_driver():
    assert advice(NO_DRIVER) == {
        "gpu": "install the driver and restart (Debian: apt install nvidia-driver; Ubuntu: "
        "ubuntu-drivers install); in a container, start it with --gpus all or --nv"
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"driver": "470.82.01", "cuda_parts": 12}, {
            "driver": "too old for CUDA 12: install 525 or newer, preferably 580",
            "cuda parts": "make run CUDA=12",
        }),
        ({"driver": "550.54"}, {"cuda parts": "make run CUDA=12"}),
        ({"driver": "550.54", "cuda_parts": 12}, {}),
        ({"cuda_parts": None}, {"cuda parts": "make run CUDA=13"}),
        ({"denied": ("/dev/nvidia0",)}, {
            "permission": "sudo usermod -aG video,render $USER, then log in again"
        }),
        ({"visible": ""}, {
            "CUDA_VISIBLE_DEVICES": "this hides all GPUs: unset CUDA_VISIBLE_DEVICES"
        }),
        ({"visible": "-1"}, {
            "CUDA_VISIBLE_DEVICES": "this hides all GPUs: unset CUDA_VISIBLE_DEVICES"
        }),
        ({"visible": "1,0"}, {}),
        ({"gpus": (Gpu("Tesla P100", 16_280, 16_000, (6, 0)),)}, {
            "gpu": "too old: 7.5 (Turing, 2018) is required"
        }),
        ({"vectors": "sse4.2"}, {
            "processor": "without avx2 or neon the CPU engine is several times slower"
        }),
    ],
)  # fmt: skip
def test_problems(changes, expected):
    assert advice(replace(HEALTHY, **changes)) == expected


def test_packages():
    packages = HEALTHY.packages | {"numpy": "2.5.0"}
    assert advice(replace(HEALTHY, packages=packages)) == {
        "numpy": "numba-cuda requires an older version: .venv/bin/python -m pip install 'numpy<2.5'"
    }
    del packages["numba-cuda"]
    assert advice(replace(HEALTHY, packages=packages)) == {
        "numba-cuda": "needed for the GPU: make run CUDA=13, or make run CUDA=12",
        "cuda parts": "make run CUDA=13",
    }


def test_installations_by_pip_are_repaired_by_pip():
    """If bwarp was installed by pip, there is no make and no checkout."""
    packages = {"numpy": "2.5.0"}
    everything = advice(replace(HEALTHY, packages=packages, by_make=False, cuda_parts=None))
    assert everything == {
        "numba": "needed for every program: pip install bwarp",
        "pysam": "needed for every program: pip install bwarp",
        "snakemake": "needed for the workflow: pip install 'bwarp[workflow]'",
        "numba-cuda": "needed for the GPU: pip install 'bwarp[gpu-cu13]', or pip install "
        "'bwarp[gpu-cu12]'",
        "multiqc": "needed for results/qc/multiqc.html: pip install 'bwarp[report]'",
        "pyarrow": "needed for Parquet tables: pip install 'bwarp[parquet]'",
        "snakemake-executor-plugin-slurm": "needed for Slurm: pip install "
        "snakemake-executor-plugin-slurm",
        "cuda parts": "pip install 'bwarp[gpu-cu13]'",
    }
    packages |= {"numba-cuda": "0.30.4"}
    machine = replace(HEALTHY, packages=packages, by_make=False, driver="550.54")
    assert (
        advice(machine)["numpy"] == "numba-cuda requires an older version: pip install 'numpy<2.5'"
    )
    assert advice(machine)["cuda parts"] == "pip install 'bwarp[gpu-cu12]'"


@pytest.fixture
def root(tmp_path) -> Path:
    """Make the files of a machine with two GPUs, one of which cannot be opened."""
    for name, text in {
        "proc/meminfo": "MemTotal:       1000 kB\nMemAvailable:    600 kB\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  "
        "550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0\n",
        "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
        "sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n",
        "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",  # its audio device
        "sys/bus/pci/devices/0000:02:00.0/vendor": "0x8086\n",
        "sys/bus/pci/devices/0000:02:00.0/class": "0x030000\n",
        "dev/nvidia0": "",
        "dev/nvidiactl": "",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_inspecting_a_machine(root, monkeypatch):
    asked = []

    def run(command):
        asked.append(command[1])
        return "NVIDIA A10, 23028, 22500, 8.6\nNVIDIA A10, [N/A], [N/A], 8.6\n"

    monkeypatch.setattr(os, "access", lambda path, mode: False)
    machine = gather("it hides", {"avx2": True, "sse4.2": True}, root, {}, run)
    assert (machine.memory, machine.free_memory) == (1_024_000, 614_400)
    assert machine.driver == "550.54.15"
    assert machine.nvidia_gpus == 1
    assert machine.denied == ("/dev/nvidia0",)
    assert machine.gpus == (Gpu("NVIDIA A10", 23_028, 22_500, (8, 6)),)
    assert machine.vectors == "avx2"
    assert (machine.visible, machine.problem) == (None, "it hides")
    assert asked == ["--query-gpu=name,memory.total,memory.free,compute_cap"]


def test_an_old_nvidia_smi_does_not_know_the_capability(root):
    def run(command):
        return "" if "compute_cap" in command[1] else "Tesla T4, 15360, 15000\n"

    machine = gather(None, {}, root, {"CUDA_VISIBLE_DEVICES": "0"}, run)
    assert machine.gpus == (Gpu("Tesla T4", 15_360, 15_000, ()),)
    assert machine.visible == "0"


def test_a_machine_without_anything(tmp_path):
    machine = gather("none", {}, tmp_path, {}, lambda command: "")
    assert (machine.driver, machine.gpus, machine.nvidia_gpus, machine.denied) == (
        None, (), 0, (),
    )  # fmt: skip
    assert found(machine, "gpu") == ["no NVIDIA GPU, and no driver"]


@pytest.mark.parametrize(
    ("installed", "parts"),
    [
        ({}, None),
        ({"cuda-bindings": "13.5.0"}, None),
        ({"cuda-bindings": "13.5.0", "nvidia-cuda-nvrtc": "13.4.92"}, 13),
        ({"cuda-bindings": "12.9.10", "nvidia-cuda-nvrtc-cu12": "12.9.86"}, 12),
        ({"cuda-bindings": "12.9.10", "nvidia-cuda-nvrtc": "13.4.92"}, None),
    ],
)
def test_the_cuda_parts_are_a_compiler_and_bindings_to_it(tmp_path, monkeypatch, installed, parts):
    def version(name):
        if name in installed:
            return installed[name]
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert gather("none", {}, tmp_path, {}, lambda command: "").cuda_parts == parts


def test_the_program(run_program):
    done = run_program("doctor.py", env={"CUDA_VISIBLE_DEVICES": ""})
    assert (done.rc, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("python ")
    assert lines[-1].startswith("backend ")
    assert " cpu: n" in lines[-1]
