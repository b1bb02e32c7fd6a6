"""Compiled functions that threads call at the same time."""

import threading
import time

import pytest

from bwarp.runtime.lazy_function import LazyFunction


class NothingStored:
    """Finds no stored code, after a while."""

    cache_path = ""

    def linked(self, _types):
        time.sleep(0.3)

    def is_kept_for(self, _types):
        return False

    def load_overload(self, *_):
        return None

    def save_overload(self, *_):
        pass


@pytest.mark.timeout(120)
def test_threads_that_compile_do_not_wait_for_each_other():
    looked_up = LazyFunction(lambda x: x + 1, {}, NothingStored())
    compiled_at_once = LazyFunction(lambda x: x + 2, {})
    results = {}
    threads = [
        threading.Thread(target=lambda f=f: results.update({f: f(1)}), daemon=True)
        for f in (looked_up, compiled_at_once)
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join(60)
    assert [results[f] for f in (looked_up, compiled_at_once)] == [2, 3]
