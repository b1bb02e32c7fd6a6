"""The processor that Numba compiles for, and its settings, without importing Numba."""

import functools
import os
from pathlib import Path

from bwarp.runtime.compiler import binding

#: Settings of Numba that do not change compiled code.
_WITHOUT_EFFECT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")


@functools.cache
def cpu_name() -> str:
    """Return LLVM's name of the processor."""
    return os.environ.get("NUMBA_CPU_NAME") or binding.get_host_cpu_name()


@functools.cache
def cpu_features() -> frozenset[str]:
    """Return the features of the processor, such as avx2 and avx512bw."""
    given = os.environ.get("NUMBA_CPU_FEATURES")
    if given is not None:
        return frozenset(name[1:] for name in given.split(",") if name.startswith("+"))
    has_avx = os.environ.get("NUMBA_ENABLE_AVX") != "0"
    found = binding.get_host_cpu_features().items()
    return frozenset(name for name, has in found if has and (has_avx or not name.startswith("avx")))


@functools.cache
def target_words() -> tuple[str, ...]:
    """Return all that determines code compiled from the same source with the same versions."""
    settings = sorted(
        f"{name}={value}"
        for name, value in os.environ.items()
        if name.startswith("NUMBA_") and name not in _WITHOUT_EFFECT
    )
    file = Path(".numba_config.yaml")
    own = file.read_text(errors="replace") if file.is_file() else ""
    triple = binding.get_process_triple()
    return triple, cpu_name(), " ".join(sorted(cpu_features())), "\n".join(settings), own
