"""The emulation gives the results of a GPU, and finds errors that a GPU does not report."""

import numpy as np
import pytest

from bwarp.gpu.cuda import cuda, int32
from tests.helpers.gpu.emulated_cuda import launch

ALL = 0xFFFFFFFF


@cuda.jit
def rotate_and_add(numbers, sums):
    table = cuda.shared.array(64, int32)
    lane = cuda.laneid
    number = numbers[cuda.grid(1)]
    table[cuda.threadIdx.x] = cuda.shfl_sync(ALL, number, (lane + 1) % 32)
    cuda.syncthreads()
    other = table[cuda.blockDim.x - 1 - cuda.threadIdx.x]
    sums[cuda.grid(1)] = int32(cuda.shfl_up_sync(ALL, other, 1) + int32(2**31 - 1))
    if cuda.ballot_sync(ALL, number > 0) == 0:
        cuda.atomic.add(sums, 0, 1)


def test_shuffles_barriers_and_wrapping():
    numbers = np.random.default_rng(1).integers(0, 100, 128).astype(np.int32)
    sums = np.zeros(128, np.int32)
    launch(rotate_and_add, 2, 64, numbers, sums)
    warps = numbers.reshape(4, 32)
    table = np.roll(warps, -1, axis=1).reshape(2, 64)[:, ::-1].reshape(4, 32)
    shifted = np.concatenate([table[:, :1], table[:, :-1]], axis=1)
    expected = (shifted.astype(np.int64) + 2**31 - 1).astype(np.int32)
    assert sums.tolist() == expected.ravel().tolist()


def test_an_index_out_of_bounds_is_an_error():
    @cuda.jit
    def beyond(numbers):
        numbers[cuda.grid(1) - 1] = 1

    with pytest.raises(AssertionError, match=r"index \(-1,\) outside of \(32,\)"):
        launch(beyond, 1, 32, np.zeros(32, np.int32))


def test_a_shuffle_that_not_all_threads_reach_is_an_error():
    @cuda.jit
    def divided(numbers):
        if cuda.laneid < 16:
            numbers[cuda.grid(1)] = cuda.shfl_sync(ALL, numbers[0], 3)

    with pytest.raises(AssertionError, match="threads wait for others"):
        launch(divided, 1, 32, np.zeros(32, np.int32))


def test_threads_that_meet_in_different_operations_are_an_error():
    @cuda.jit
    def different(numbers):
        if cuda.laneid < 16:
            numbers[0] = cuda.shfl_sync(ALL, numbers[0], 3)
        else:
            cuda.syncwarp()

    with pytest.raises(AssertionError, match="different operations"):
        launch(different, 1, 32, np.zeros(32, np.int32))


def test_memory_never_written_is_no_sensible_number():
    @cuda.jit
    def unwritten(numbers):
        table = cuda.shared.array(32, int32)
        numbers[cuda.grid(1)] = table[cuda.threadIdx.x]

    numbers = np.zeros(32, np.int32)
    launch(unwritten, 1, 32, numbers)
    assert (numbers > 10**9).all()
