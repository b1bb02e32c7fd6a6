"""Work that runs out of GPU memory can be retried in smaller pieces."""

import random
import threading
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

import numpy as np

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.gpu.available_memory import (
    affordable,
    attempt,
    free_memory,
    require_memory,
    total_memory,
)
from bwarp.gpu.cuda import cuda
from bwarp.gpu.pieces import BEFORE_A_LARGER, Pieces
from tests.helpers.gpu.pretended_device import pretend_gpu

GB = 10**9

CudaAPIError = type("CudaAPIError", (Exception,), {})


@pytest.fixture
def gpu(monkeypatch):
    """Simulate a GPU with 5 GB free that records what is freed."""
    given_back = []
    context = types.SimpleNamespace(
        memory_manager=types.SimpleNamespace(
            deallocations=types.SimpleNamespace(clear=lambda: given_back.append("late"))
        ),
        get_memory_info=lambda: types.SimpleNamespace(free=5_000_000_000),
    )
    monkeypatch.setattr(cuda, "current_context", lambda: context)
    monkeypatch.setattr(
        available_memory.workspace, "give_back", lambda: given_back.append("work space")
    )
    return given_back


@pytest.mark.parametrize(
    ("wanted", "taken", "asked"),
    [(0, 0, 0), (GB, GB, 0), (GB + 1, GB + 1, 1), (8 * GB, 8 * GB, 1), (9 * GB, 8 * GB, 1)],
)
def test_small_requests_are_not_checked(monkeypatch, wanted, taken, asked):
    pretend_gpu(monkeypatch, [])
    questions = []

    def answer():
        questions.append("how much is free?")
        return types.SimpleNamespace(free=10 * GB, total=64 * GB)

    monkeypatch.setattr(cuda.current_context(), "get_memory_info", answer)
    assert total_memory() == 64 * GB
    questions.clear()
    assert affordable(wanted, 0.8) == taken
    assert len(questions) == asked


def test_the_result_of_work_is_returned(gpu):
    assert attempt(lambda: 7) == 7
    assert gpu == []


def test_memory_is_freed_after_a_failure(gpu):
    def work():
        raise CudaAPIError("Call to cuMemAllocAsync results in CUDA_ERROR_OUT_OF_MEMORY")

    assert attempt(work) is None
    assert gpu == ["work space", "late"]


@pytest.mark.parametrize(
    "error", [GpuMemoryError("a plan takes 9 GB"), CudaAPIError("CUDA_ERROR_LAUNCH_FAILED")]
)
def test_other_errors_are_not_retried(gpu, error):
    def work():
        raise error

    with pytest.raises(type(error), match=str(error)):
        attempt(work)


def test_too_little_memory_is_refused_with_both_numbers(gpu):
    assert free_memory() == 5_000_000_000
    require_memory(5_000_000_000, "sorting")
    message = "sorting requires 5.1 GB of GPU memory, but only 5.0 GB are free: use --backend cpu"
    with pytest.raises(GpuMemoryError, match=message):
        require_memory(5_100_000_000, "sorting")


NO_ROOM = GpuMemoryError("no room for one")


def work_of_at_most(room):
    """Return work that runs out of memory for more than this many items."""

    def work(first, last):
        tried.append((first, last))
        if last - first > room:
            raise CudaAPIError("Call to cuMemAllocAsync results in CUDA_ERROR_OUT_OF_MEMORY")
        return first, last

    tried = []
    return work, tried


def test_work_that_fits_is_done_at_once(gpu):
    work, _ = work_of_at_most(10)
    pieces = Pieces(100, NO_ROOM)
    assert pieces.each(work, 10) == [(0, 10)]
    assert pieces.each(work, 0) == [(0, 0)]
    assert (pieces.at_once, pieces.halvings) == (100, 0)


def test_pieces_have_equal_sizes_if_possible(gpu):
    work, _ = work_of_at_most(10)
    assert Pieces(4, NO_ROOM).each(work, 9) == [(0, 3), (3, 6), (6, 9)]
    assert Pieces(10, NO_ROOM).each(work, 11) == [(0, 6), (6, 11)]
    # Ranges of pairs begin at even numbers, and do not exceed the limit.
    assert Pieces(7, NO_ROOM).each(work, 14, step=2) == [(0, 6), (6, 10), (10, 14)]
    assert Pieces(1, NO_ROOM).each(work, 4, step=2) == [(0, 2), (2, 4)]
    assert Pieces(4, NO_ROOM).each(work, 7, step=2) == [(0, 4), (4, 7)]


def test_pieces_are_halved_and_stay_small(gpu):
    work, tried = work_of_at_most(3)
    pieces = Pieces(100, NO_ROOM)
    assert pieces.each(work, 8) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert tried[:3] == [(0, 8), (0, 4), (0, 2)]
    assert (pieces.at_once, pieces.halvings) == (2, 2)
    tried.clear()
    assert pieces.each(work, 3) == tried == [(0, 2), (2, 3)]


def test_pieces_grow_where_memory_is_free_again(gpu):
    pieces = Pieces(100, NO_ROOM)
    work, _ = work_of_at_most(3)
    pieces.each(work, 8)
    assert (pieces.at_once, pieces.halvings) == (2, 2)
    work, tried = work_of_at_most(100)
    pieces.each(work, 2 * BEFORE_A_LARGER)
    # Pieces of four were small enough before.
    of_two = BEFORE_A_LARGER - 4
    assert [last - first for first, last in tried[: of_two + 1]] == [2] * of_two + [4]
    for _ in range(BEFORE_A_LARGER):
        pieces.each(work, 1)
    assert (pieces.at_once, pieces.halvings) == (100, 0)
    tried.clear()
    assert pieces.each(work, 30) == tried == [(0, 30)]


def test_tries_of_larger_pieces_become_rare_where_memory_stays_short(gpu):
    work, tried = work_of_at_most(30)
    found = Pieces(100, NO_ROOM).each(work, 25_000)
    assert {last - first for first, last in found} == {25}
    assert len(found) == 1000
    failed = np.flatnonzero([last - first > 30 for first, last in tried])
    assert failed[:2].tolist() == [0, 1]
    # The size that was small enough for the preceding pieces.
    assert (np.diff(failed[1:]) - 1).tolist() == [BEFORE_A_LARGER << i for i in range(6)]


def test_threads_halve_a_size_once_and_find_it_again(gpu):
    """Two threads try pieces of a size that is too large at the same time."""
    both, room = threading.Barrier(2), 50

    def work(first, last):
        if last - first > room:
            both.wait(10)
            raise CudaAPIError("CUDA_ERROR_OUT_OF_MEMORY")
        return first, last

    pieces = Pieces(100, NO_ROOM)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: pieces.each(work, 100), range(2)))
    assert found == [[(0, 50), (50, 100)]] * 2
    assert (pieces.at_once, pieces.halvings) == (50, 1)


def test_threads_may_fail_at_any_time(gpu):
    pieces = Pieces(64, NO_ROOM)

    def work(first, last):
        if last - first > 1 and chance.random() < 0.2:
            raise CudaAPIError("CUDA_ERROR_OUT_OF_MEMORY")
        return range(first, last)

    chance = random.Random(3)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: pieces.each(work, 100), range(40)):
            assert [item for piece in found for item in piece] == list(range(100))
    chance.random = lambda: 1
    while pieces.halvings:
        pieces.each(work, 1)
    assert pieces.at_once == 64


@pytest.mark.parametrize("room", [2, 3, 4, 5])
@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_pairs_are_not_split(gpu, room, at_once):
    work, _ = work_of_at_most(room)
    found = Pieces(at_once, NO_ROOM).each(work, 14, step=2)
    assert all(first % 2 == 0 and 0 < last - first <= room for first, last in found)
    assert [first for first, _ in found[1:]] + [14] == [last for _, last in found]


@pytest.mark.parametrize("step", [1, 2])
def test_no_room_for_the_smallest_piece(gpu, step):
    work, tried = work_of_at_most(step - 1)
    with pytest.raises(GpuMemoryError, match="no room for one: use --backend cpu"):
        Pieces(100, NO_ROOM).each(work, 8, step)
    assert tried[-1] == (0, step)


@pytest.mark.gpu
def test_a_gpu_that_was_full_is_free_again():
    total = cuda.current_context().get_memory_info().total

    def work():
        # At most an eighth of the memory is taken, because others may use this GPU.
        return [cuda.device_array(size, np.uint8) for size in (total // 8, 2 * total)]

    before = free_memory()
    assert attempt(work) is None
    assert free_memory() > 0.95 * before
