"""How many reads are mapped at a time."""

import pytest

from bwarp.mapping import engine


@pytest.mark.parametrize(
    ("reads", "threads", "expected"),
    [
        (None, 16, 1 << 18),  # a pipe
        (12_000_000, 16, 1 << 18),
        (200_000, 16, 16_668),  # every thread has some, and pairs are whole
        (200_001, 1, 200_002),
        (200_000, 4, 50_000),
        (100, 16, engine.FEWEST_ON_GPU),
        (0, 1, engine.FEWEST_ON_GPU),
    ],
)
def test_a_gpu_takes_many_reads_at_a_time_but_leaves_no_thread_without(reads, threads, expected):
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")
    assert engine.reads_a_chunk("cuda", threads, reads) == expected


def test_few_threads_of_the_cpu_keep_little():
    sizes = [engine.reads_a_chunk("cpu", threads, 12_000_000) for threads in (1, 2, 4, 64)]
    assert sizes == [1 << 13, 1 << 13, 1 << 14, 1 << 15]
