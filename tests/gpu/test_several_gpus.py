"""Work on several simulated GPUs: which thread gets which, and when."""

import threading

import numpy as np
import pytest

from bwarp.gpu.cuda import cuda
from bwarp.gpu.several_gpus import LeastBusy, copy_from_gpu, on_each, on_gpu
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.gpu.transfers import to_gpu
from bwarp.runtime.chunks import in_turns
from tests.helpers.gpu.pretended_device import pretend_gpu


@pytest.mark.parametrize(("most", "used"), [(1, 1), (2, 2), (3, 3), (9, 3)])
def test_work_is_done_on_each(monkeypatch, most, used):
    pretend_gpu(monkeypatch, [], gpus=3)
    numbers = np.arange(5)
    found = on_each(lambda: (cuda.get_current_device().id, to_gpu([numbers])[0]), most)
    assert [gpu for gpu, _ in found] == [gpu.id for gpu in cuda.gpus[:used]]
    for gpu, array in found:
        assert array.gpu == gpu


def test_copies_to_several_gpus_do_not_wait_for_one_another(monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=2)
    both_copy = threading.Barrier(2, timeout=20)
    from bwarp.gpu.cuda import driver

    copy = driver.host_to_device

    def wait_and_copy(*arguments):
        both_copy.wait()
        copy(*arguments)

    monkeypatch.setattr(driver, "host_to_device", wait_and_copy)
    arrays = [np.arange(7), np.arange(3)]
    for one, other in on_each(lambda: to_gpu(arrays), 2):
        assert (one.tolist(), other.tolist()) == (list(range(7)), list(range(3)))


def test_an_error_on_one_gpu_is_raised(monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=2)

    def fail_on_second():
        if cuda.get_current_device() is cuda.gpus[1]:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        on_each(fail_on_second, 2)


def test_the_gpu_with_the_least_to_do_is_lent(monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=3)
    workers = LeastBusy("abc")
    with workers.lent() as first:
        assert cuda.get_current_device() is cuda.gpus[0]
        with workers.lent() as second, workers.lent(2) as third:
            assert cuda.get_current_device() is cuda.gpus[2]
            # The threads have one, two and one of these.
            with workers.lent(1), workers.lent() as fourth, workers.lent() as fifth:
                assert [first, second, third, fourth, fifth] == list("abcac")
        with workers.lent() as again:
            assert again == "b"
    assert cuda.get_current_device() is cuda.gpus[0]


def test_items_are_made_on_the_gpu(monkeypatch):
    pretend_gpu(monkeypatch, [], gpus=2)

    def work(count):
        for _ in range(count):
            yield cuda.get_current_device()

    assert list(on_gpu(1, work, 2)) == [cuda.gpus[1]] * 2
    assert cuda.get_current_device() is cuda.gpus[0]


@pytest.mark.gpu
@pytest.mark.parametrize("size", [0, 1, 10_000_000])
def test_copies_from_one_gpu_to_another(size):
    if len(cuda.gpus) < 2:
        pytest.skip("needs two GPUs")
    with cuda.gpus[1]:
        there = cuda.to_device(np.ones(size, np.uint32))
        if size:
            exclusive_sum(there)
    here = copy_from_gpu(there, 1)
    del there
    with cuda.gpus[1]:
        # This one may stay on its GPU.
        cuda.to_device(np.full(size, 7, np.uint32))
    assert here.copy_to_host().tolist() == list(range(size))


@pytest.mark.gpu
def test_arrays_and_kernels_of_each_gpu():
    if len(cuda.gpus) < 2:
        pytest.skip("needs two GPUs")
    counts = [np.full(100_000, number, np.uint32) for number in range(4)]

    def add_up_some(_gpu, number):
        copy = cuda.to_device(counts[number])
        exclusive_sum(copy)
        yield cuda.get_current_device().id, copy.copy_to_host()

    found = [next(results) for _, results in in_turns(add_up_some, [0, 1], range(4))]
    assert [gpu for gpu, _ in found] == [0, 1, 0, 1]
    for number, (_, sums) in enumerate(found):
        assert sums.tolist() == (np.cumsum(counts[number]) - counts[number]).tolist()
