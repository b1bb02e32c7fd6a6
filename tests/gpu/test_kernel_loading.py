"""Two threads never load kernels at once."""

import threading

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu import kernel_loading
from bwarp.gpu.kernel_loading import load_in_turn


class Library:
    """Loading takes a while, and does not bear to be begun twice at once."""

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
    monkeypatch.setattr(Library, "load", Library.load)  # undone at the end
    assert load_in_threads().overlapped
    monkeypatch.setattr(kernel_loading, "_LOADING", ((Library, "load"),))
    load_in_turn()
    assert not load_in_threads().overlapped
    in_turn = Library.load
    load_in_turn()
    assert Library.load is in_turn


def test_what_numba_cuda_loads_with_is_there():
    for owner, name in kernel_loading._LOADING:
        assert callable(getattr(owner, name))
