"""Two threads never load kernels at once, and cached kernels are loaded without the compiler."""

import os
import subprocess
import sys
import threading
from typing import NamedTuple

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import launch as kernel_loading
from bwarp.gpu.launch import compiled_kernel, load_in_turn
from tests.conftest import CHECKOUT
from tests.helpers.gpu.cuda_compiler import missing_compiler


class Library:
    """A library whose loading takes time and must not be started twice at once."""

    def __init__(self):
        self.loading, self.overlapped = 0, False

    def load(self):
        self.loading += 1
        self.overlapped = self.overlapped or self.loading > 1
        threading.Event().wait(0.02)
        self.loading -= 1
        return "a kernel"


def load_in_threads() -> Library:
    library, loaded = Library(), []
    threads = [threading.Thread(target=lambda: loaded.append(library.load())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loaded == ["a kernel"] * 4
    return library


def test_threads_wait_for_one_another(monkeypatch):
    monkeypatch.setattr(Library, "load", Library.load)  # restored at the end
    assert load_in_threads().overlapped
    monkeypatch.setattr(kernel_loading, "_LOADING", ((Library, "load"),))
    load_in_turn()
    assert not load_in_threads().overlapped
    in_turn = Library.load
    load_in_turn()
    assert Library.load is in_turn


def test_loading_methods_of_numba_cuda_exist():
    for owner, name in kernel_loading._LOADING:
        assert callable(getattr(owner, name))


def test_precompiled_kernels_are_found_with_a_named_tuple_as_capability():
    """CUDA's package gives such a tuple; compiling ahead uses a plain tuple."""

    class Capability(NamedTuple):
        major: int
        minor: int

    class Codegen:
        def __init__(self, capability):
            self.capability = capability

        def magic_tuple(self):
            return (13, 0), self.capability

    code = compiled_kernel(lambda: None)._cache
    assert code._words((), Codegen((9, 0))) == code._words((), Codegen(Capability(9, 0)))


LOAD = """
import sys
from bwarp.gpu import compile_ahead
compile_ahead.pretend_to_have((9, 0))
from bwarp.composition import tiles_cuda
kernel, signature = compile_ahead.stated_types(tiles_cuda)[0]
kernel = kernel.dispatcher
context = kernel.targetctx
set_up = set()
refresh = type(context).refresh
type(context).refresh = lambda self: (set_up.add("compiler"), refresh(self))[1]
found = kernel._cache.load_overload(signature, context)
if found is None:
    print("compiled")
    compile_ahead.compile_kernel(tiles_cuda.__name__, 0)
else:
    print("loaded with", *set_up, found._codelibrary.get_cubin() is not None)
"""


@pytest.mark.compiler
def test_the_compiler_is_set_up_only_to_compile(tmp_path):
    if missing_compiler():
        pytest.skip(missing_compiler())
    said = [
        subprocess.run(
            [sys.executable, "-c", LOAD], check=True, capture_output=True, text=True,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(CHECKOUT)},
        ).stdout
        for _ in range(2)
    ]  # fmt: skip
    assert said == ["compiled\n", "loaded with True\n"]
