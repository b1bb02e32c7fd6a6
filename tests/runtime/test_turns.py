"""Items that several simulated GPUs search in turn."""

import threading
import time

import pytest

from bwarp.runtime import chunks as turns
from bwarp.runtime.chunks import in_turns, on_each_gpu
from tests.helpers.gpu.pretended_device import pretend_gpu


@pytest.fixture(params=[1, 2, 3])
def indexes(request, monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=3)
    from bwarp.gpu.cuda import cuda

    return on_each_gpu(lambda: cuda.get_current_device().id, "cuda", request.param)


def search(index, item):
    """Yield as many results as the item says, some of them late."""
    from bwarp.gpu.cuda import cuda

    assert index == cuda.get_current_device().id
    for number in range(item):
        if number == 2 and item % 2:
            time.sleep(0.01)
        yield item, number


def expected_of(items):
    return [(item, [(item, number) for number in range(item)]) for item in items]


@pytest.mark.parametrize("items", [[], [0], [3], [1, 5, 0, 0, 20, 3, 2, 9, 40, 1]])
def test_results_are_in_order(indexes, items):
    found = [(item, list(results)) for item, results in in_turns(search, indexes, iter(items))]
    assert found == expected_of(items)


def test_all_gpus_take_part_at_once(monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=3)
    indexes = on_each_gpu(lambda: None, "cuda", 3)
    together = threading.Barrier(3, timeout=20)

    def wait(_index, item):
        together.wait()
        yield item

    found = [list(results) for _, results in in_turns(wait, indexes, range(9))]
    assert found == [[item] for item in range(9)]


def test_no_gpu_runs_far_ahead(monkeypatch):
    monkeypatch.setattr(turns, "MOST_WAITING", 2)
    pretend_gpu(monkeypatch, [], gpus=2)
    indexes = on_each_gpu(lambda: None, "cuda", 2)
    made = []

    def make(_index, item):
        for number in range(50):
            made.append((item, number))
            yield number

    for item, results in in_turns(make, indexes, range(5)):
        assert next(results) == 0
        time.sleep(0.05)
        # Two that wait, one being handed on, and the requested one.
        assert sum(one == item for one, _ in made) <= 4
        assert list(results) == list(range(1, 50))


@pytest.mark.parametrize("fails", [0, 3])
def test_an_error_is_raised_after_earlier_results(indexes, fails):
    def fail(index, item):
        yield from search(index, item)
        if item == fails:
            raise ValueError("no such item")

    found, threads = [], threading.active_count()

    def take_all():
        for _, results in in_turns(fail, indexes, range(6)):
            found.extend(results)

    with pytest.raises(ValueError, match="no such item"):
        take_all()
    assert found == [(item, number) for item in range(fails + 1) for number in range(item)]
    assert threading.active_count() == threads


def test_stopping_early_leaves_no_thread_behind(indexes):
    threads = threading.active_count()
    searches = in_turns(search, indexes, [100] * 10)
    _, results = next(searches)
    assert next(results) == (100, 0)
    searches.close()
    assert threading.active_count() == threads


def test_errors_in_reading_items_are_raised(indexes):
    def items():
        yield 1
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(in_turns(search, indexes, items()))


def test_without_a_gpu_preparation_happens_once():
    assert on_each_gpu(lambda: "index", "cpu", 4) == ["index"]
