"""Report what bwarp can use on this machine, which engine will run, and how to install more.

`gather` collects facts and `diagnose` turns them into findings, so that tests can diagnose any kind
of machine.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bwarp.runtime.host_memory import text_of

_PACKAGE = Path(__file__).parent.parent

#: The minimum major version of the driver for each major version of CUDA.
OLDEST_DRIVER = {13: 580, 12: 525}

#: The minimum compute capability of a GPU: Turing.
LEAST_CAPABILITY = (7, 5)

#: PCI vendor number of NVIDIA, and prefix of the device classes for graphics and computing.
_NVIDIA, _DISPLAY = "0x10de", "0x03"

#: Packages whose versions matter, with their purpose and the extra that installs them.
PACKAGES = {
    "numpy": ("every program", ""),
    "numba": ("every program", ""),
    "pysam": ("every program", ""),
    "snakemake": ("the workflow", "workflow"),
    "numba-cuda": ("the GPU", "gpu-cu13"),
    "multiqc": ("results/qc/multiqc.html", "report"),
    "pyarrow": ("Parquet tables", "parquet"),
    "snakemake-executor-plugin-slurm": ("Slurm", None),
}

#: Vector instructions that the engines use, best first.
_VECTORS = ("avx512bw", "avx2", "sse4.2", "sve", "neon")


@dataclass(frozen=True)
class Gpu:
    """A GPU as listed by nvidia-smi; `capability` is empty if its version does not report it."""

    name: str
    memory_mb: int
    free_mb: int
    capability: tuple[int, ...]


@dataclass(frozen=True)
class Machine:
    """Facts about a machine, collected by `gather`.

    Attributes
    ----------
    cores, all_cores : int
        Cores that this process may use, and all cores.
    memory, free_memory, free_disk : int
        In bytes; the disk is that of the current folder.
    vectors : str
        The best supported vector instructions; empty if none is known.
    packages : dict
        Versions of the installed packages by name.
    cuda_parts : int or None
        CUDA version of the compiler wheels, 12 or 13.
    nvidia_gpus : int
        Number of NVIDIA GPUs in the slots, with or without a driver.
    driver : str or None
        Version of the loaded driver.
    denied : tuple of str
        Device files of GPUs that this user may not open.
    visible : str or None
        CUDA_VISIBLE_DEVICES.
    gpus : tuple of Gpu
    problem : str or None
        Why programs cannot use a GPU.
    by_make : bool
        Whether `make` installed the packages, in .venv of the checkout.
    """

    cores: int
    all_cores: int
    memory: int
    free_memory: int
    free_disk: int
    vectors: str
    packages: Mapping[str, str]
    cuda_parts: int | None
    nvidia_gpus: int
    driver: str | None
    denied: tuple[str, ...]
    visible: str | None
    gpus: tuple[Gpu, ...]
    problem: str | None
    by_make: bool


@dataclass(frozen=True)
class Finding:
    """One line of the report: the item, its state, and advice, empty if there is none."""

    what: str
    found: str
    advice: str = ""


def gather(
    problem: str | None,
    features: Mapping[str, bool],
    root: Path = Path("/"),
    environment: Mapping[str, str] = os.environ,
    run: Callable[[Sequence[str]], str] | None = None,
) -> Machine:
    """Collect facts about this machine.

    Parameters
    ----------
    problem : str or None
        Result of `bwarp.runtime.backend.gpu_problem`.
    features : mapping of str to bool
        Features of the processor under LLVM's names.
    root : Path
        Parent folder of /proc, /sys and /dev.
    environment : mapping
    run : function of a command
        Return the output of a command, empty if it fails.
    """
    run = run or _run
    memory = dict(re.findall(r"^(\w+):\s+(\d+) kB$", text_of(root / "proc/meminfo"), re.MULTILINE))
    driver = re.search(
        r"Kernel Module.*?\s(\d+\.\d[\d.]*)\s", text_of(root / "proc/driver/nvidia/version")
    )
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        all_cores=os.cpu_count(),
        memory=1024 * int(memory.get("MemTotal", 0)),
        free_memory=1024 * int(memory.get("MemAvailable", 0)),
        free_disk=shutil.disk_usage(".").free,
        vectors=next((name for name in _VECTORS if features.get(name)), ""),
        packages={name: version for name in PACKAGES if (version := _version(name))},
        cuda_parts=_cuda_parts(),
        nvidia_gpus=sum(map(_is_nvidia_gpu, (root / "sys/bus/pci/devices").glob("*"))),
        driver=driver[1] if driver else None,
        denied=tuple(
            f"/dev/{path.name}"
            for path in sorted((root / "dev").glob("nvidia[0-9]*"))
            if not os.access(path, os.R_OK | os.W_OK)
        ),
        visible=environment.get("CUDA_VISIBLE_DEVICES"),
        gpus=_gpus(run),
        problem=problem,
        by_make=Path(sys.prefix) == _PACKAGE.parent / ".venv",
    )


def diagnose(machine: Machine) -> list[Finding]:
    """Return findings with advice; the last one names the engine that will run."""
    findings = [
        Finding("python", f"{platform.python_version()} ({sys.executable})"),
        *_packages(machine),
        Finding("processor", _processor(machine), _processor_advice(machine)),
        Finding(
            "memory",
            f"{_gigabytes(machine.memory)}, {_gigabytes(machine.free_memory)} free; building an "
            "index takes 5 bytes per base: 16 GB for a human genome",
        ),
        Finding("disk here", f"{_gigabytes(machine.free_disk)} free"),
        *_gpu(machine),
    ]
    if machine.problem is None:
        engine = "cuda: a GPU can be used, and --backend auto uses it"
    else:
        engine = f"cpu: {machine.problem}"
    return [*findings, Finding("backend", engine)]


def _packages(machine: Machine) -> list[Finding]:
    findings = []
    for name, (purpose, extra) in PACKAGES.items():
        version = machine.packages.get(name)
        if version is None:
            advice = f"needed for {purpose}: {_installing(machine, name, extra)}"
            findings.append(Finding(name, "not installed", advice))
        elif name == "numpy" and _numbers(version) >= (2, 5) and "numba-cuda" in machine.packages:
            advice = f"numba-cuda requires an older version: {_pip(machine)} 'numpy<2.5'"
            findings.append(Finding(name, version, advice))
        else:
            findings.append(Finding(name, version))
    return findings


def _installing(machine: Machine, name: str, extra: str | None) -> str:
    """Return the command that installs a package."""
    if extra is None:
        return f"{_pip(machine)} {name}"
    if extra == "gpu-cu13":
        return f"{_cuda_command(machine, 13)}, or {_cuda_command(machine, 12)}"
    if machine.by_make and extra != "parquet":
        return "make run"
    return f"{_pip(machine)} 'bwarp[{extra}]'" if extra else f"{_pip(machine)} bwarp"


def _pip(machine: Machine) -> str:
    return ".venv/bin/python -m pip install" if machine.by_make else "pip install"


def _cuda_command(machine: Machine, cuda: int) -> str:
    """Return the command that installs the packages for a version of CUDA."""
    return f"make run CUDA={cuda}" if machine.by_make else f"pip install 'bwarp[gpu-cu{cuda}]'"


def _processor(machine: Machine) -> str:
    cores = f"{machine.cores} of {machine.all_cores} cores can be used"
    return f"{cores}, vectors: {machine.vectors or 'unknown'}"


def _processor_advice(machine: Machine) -> str:
    slow = machine.vectors in ("", "sse4.2")
    return "without avx2 or neon the CPU engine is several times slower" if slow else ""


def _gpu(machine: Machine) -> list[Finding]:
    """Return findings about the GPU; each matters only if the ones before it are fine."""
    if machine.driver is None and not machine.gpus:
        if machine.nvidia_gpus == 0:
            return [Finding("gpu", "no NVIDIA GPU, and no driver")]
        return [
            Finding(
                "gpu",
                f"{machine.nvidia_gpus} NVIDIA GPU(s), but no driver",
                "install the driver and restart (Debian: apt install nvidia-driver; Ubuntu: "
                "ubuntu-drivers install); in a container, start it with --gpus all or --nv",
            )
        ]
    findings = [Finding("driver", machine.driver or "version unknown", _driver_advice(machine))]
    for gpu in machine.gpus:
        capability = ".".join(map(str, gpu.capability)) or "unknown"
        old = gpu.capability and gpu.capability < LEAST_CAPABILITY
        findings.append(
            Finding(
                "gpu",
                f"{gpu.name}, {gpu.memory_mb / 1024:.0f} GiB ({gpu.free_mb / 1024:.0f} free), "
                f"compute capability {capability}",
                "too old: 7.5 (Turing, 2018) is required" if old else "",
            )
        )
    if machine.denied:
        findings.append(
            Finding(
                "permission",
                f"no access to {', '.join(machine.denied)}",
                "sudo usermod -aG video,render $USER, then log in again",
            )
        )
    if machine.visible is not None:
        hidden = re.match(r"\s*(\d|GPU-|MIG-)", machine.visible) is None
        findings.append(
            Finding(
                "CUDA_VISIBLE_DEVICES",
                repr(machine.visible),
                "this hides all GPUs: unset CUDA_VISIBLE_DEVICES" if hidden else "",
            )
        )
    findings.append(_cuda_finding(machine))
    return findings


def _driver_advice(machine: Machine) -> str:
    if machine.driver and _numbers(machine.driver) < (min(OLDEST_DRIVER.values()),):
        return "too old for CUDA 12: install 525 or newer, preferably 580"
    return ""


def _cuda_finding(machine: Machine) -> Finding:
    """Report whether the CUDA packages are installed and not too new for the driver."""
    number = _numbers(machine.driver)[0] if machine.driver else 0
    fitting = next((cuda for cuda, least in OLDEST_DRIVER.items() if number >= least), 12)
    if machine.cuda_parts is None or "numba-cuda" not in machine.packages:
        return Finding("cuda parts", "not installed", _cuda_command(machine, fitting))
    found = f"CUDA {machine.cuda_parts}"
    if number and number < OLDEST_DRIVER.get(machine.cuda_parts, 0):
        return Finding(
            "cuda parts",
            f"{found}, too new for driver {machine.driver}",
            _cuda_command(machine, fitting),
        )
    return Finding("cuda parts", found)


def _gpus(run) -> tuple[Gpu, ...]:
    """Return the GPUs of nvidia-smi; old versions do not report the compute capability."""
    for fields in ("name,memory.total,memory.free,compute_cap", "name,memory.total,memory.free"):
        lines = run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader,nounits"])
        gpus = [line.split(", ") for line in lines.splitlines() if line.count(", ") >= 2]
        gpus = [gpu for gpu in gpus if gpu[1].isdigit() and gpu[2].isdigit()]
        if gpus:
            return tuple(
                Gpu(name, int(memory), int(free), _numbers(rest[0]) if rest else ())
                for name, memory, free, *rest in gpus
            )
    return ()


def _run(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _is_nvidia_gpu(device: Path) -> bool:
    maker, kind = text_of(device / "vendor").strip(), text_of(device / "class").strip()
    return maker == _NVIDIA and kind.startswith(_DISPLAY)


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cuda_parts() -> int | None:
    """Return the CUDA version of the bindings if the compiler that they call is installed."""
    version = _version("cuda-bindings")
    if version is None:
        return None
    number = _numbers(version)[0]
    compiler = "nvidia-cuda-nvrtc" + ("-cu12" if number == 12 else "")
    return number if _version(compiler) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)) or (0,)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.0f} GB" if size >= 1e10 else f"{size / 1e9:.1f} GB"
