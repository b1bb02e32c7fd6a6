"""Compiling CUDA kernels for any architecture without a GPU."""

import functools
import importlib.util
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

ARCHITECTURES = ((7, 5), (8, 0), (9, 0), (12, 0))

#: From this architecture on, NVVM is a different compiler. Before it, PTX differs only in the line
#: that names the GPU.
_NEXT_NVVM = (10, 0)


@functools.cache
def ptxas() -> Path | None:
    """Return the assembler of the CUDA compiler wheels, or None if they are not installed."""
    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    return next((found for folder in folders for found in Path(folder).glob("*/bin/ptxas")), None)


def missing_compiler() -> str | None:
    """Return why kernels cannot be compiled here, or None if they can."""
    if importlib.util.find_spec("numba_cuda") is None or ptxas() is None:
        return "needs the CUDA compiler wheels: pip install -e '.[gpu-cu13]'"
    return None


def compile_ptx(kernel, argument_types, architecture) -> str:
    """Return the PTX of a kernel for the given Numba types of its arguments."""
    (text,) = _typed_code(kernel, argument_types).get_asm_strs(cc=architecture)
    return text


def compile_for_all(kernel, argument_types, lowest=ARCHITECTURES[0]) -> dict[tuple, str]:
    """Return the PTX of a kernel for each architecture from `lowest` on, with two runs of NVVM."""
    texts, last = {}, None
    for architecture in ARCHITECTURES:
        if architecture < lowest:
            continue
        if last is None or last < _NEXT_NVVM <= architecture:
            texts[architecture] = compile_ptx(kernel, argument_types, architecture)
        else:
            texts[architecture] = for_architecture(texts[last], architecture)
        last = architecture
    return texts


def for_architecture(ptx: str, architecture) -> str:
    """Return the same PTX for another GPU."""
    return re.sub(r"^\.target sm_\d+", f".target {_name(architecture)}", ptx, flags=re.MULTILINE)


def _name(architecture) -> str:
    return f"sm_{architecture[0]}{architecture[1]}"


@functools.lru_cache(maxsize=8)
def _typed_code(kernel, argument_types):
    """Return a kernel as input of NVVM: most of the compile time, and the same for every GPU.

    Here Numba uses the compute capability only for half-precision numbers or GPUs before sm_60.
    """
    from bwarp.gpu.cuda import compile_typed, dispatcher

    options = {
        name: kernel.targetoptions[name]
        for name in ("fastmath", "launch_bounds", "opt")
        if kernel.targetoptions.get(name) is not None
    }
    # A kernel's device functions are compiled for "the current device".
    device = SimpleNamespace(compute_capability=ARCHITECTURES[0])
    with mock.patch.object(dispatcher, "get_current_device", return_value=device):
        code, _ = compile_typed(
            kernel.py_func,
            argument_types,
            device=False,
            abi="numba",
            cc=ARCHITECTURES[0],
            **options,
        )
    return code


def local_memory(ptx: str, architecture, max_registers: int | None = None) -> int:
    """Return the bytes of stack and register spills per thread in the machine code of a PTX."""
    command = [ptxas(), "-v", f"-arch={_name(architecture)}", "-", "-o", "/dev/null"]
    if max_registers:
        command.append(f"--maxrregcount={max_registers}")
    result = subprocess.run(command, input=ptx, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    sizes = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
        result.stderr,
    )
    assert sizes, f"ptxas -v says nothing of spills:\n{result.stderr}"
    return max(int(stack) + int(stores) + int(loads) for stack, stores, loads in sizes)
