"""BGZF blocks from a GPU: gzip reads them, wherever they end and whatever they contain."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from bwarp.bam.bgzf import BLOCK_BYTES, END_OF_FILE, compressed_blocks, whole_blocks

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam import bgzf_cuda as bgzf_blocks_cuda
from bwarp.bam.bgzf_cuda import BlocksOnGpu
from bwarp.gpu import nvcomp
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.gpu.pretended_nvcomp import fails, pretend_nvcomp


def hostile_data() -> np.ndarray:
    """Return blocks that compress well, badly and not at all; the last one is not full."""
    rng = np.random.default_rng(3)
    text = rng.choice(np.frombuffer(b"ACGT", np.uint8), 2 * BLOCK_BYTES + 100)
    noise = rng.integers(0, 256, 2 * BLOCK_BYTES).astype(np.uint8)
    return np.concatenate([noise[:BLOCK_BYTES], text, noise, np.zeros(BLOCK_BYTES, np.uint8), text])


def sizes_to_try() -> list[int]:
    return [1, 10, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, hostile_data().size]


def assert_read_back(data, blocks, ends):
    assert whole_blocks(blocks) == (ends[-1], data.size)
    assert gzip.decompress(blocks.tobytes() + END_OF_FILE) == data.tobytes()
    for number, (begin, end) in enumerate(zip([0, *ends], ends, strict=False)):
        own = data[BLOCK_BYTES * number : BLOCK_BYTES * (number + 1)]
        assert gzip.decompress(blocks[begin:end].tobytes()) == own.tobytes()


def blocks_of(blocks_on_gpu, data):
    return blocks_on_gpu(data.size, partial(np.copyto, src=data))


def wait_for_lanes() -> None:
    """Wait until no thread allocates lanes."""
    for thread in threading.enumerate():
        if "_make_lanes" in thread.name:
            thread.join(10)


@pytest.fixture
def pretended(monkeypatch):
    pretend_gpu(monkeypatch, [bgzf_blocks_cuda])
    monkeypatch.setattr(bgzf_blocks_cuda, "_THREADS", 32)
    monkeypatch.setattr(bgzf_blocks_cuda.cuda, "synchronize", int, raising=False)
    pretend_nvcomp(monkeypatch)


@pytest.mark.usefixtures("pretended")
def test_blocks_contain_their_data():
    blocks_on_gpu = BlocksOnGpu(most_blocks=20, lanes=1)
    for size in sizes_to_try():
        data = hostile_data()[:size]
        assert_read_back(data, *blocks_of(blocks_on_gpu, data))
    blocks = [data[at : at + BLOCK_BYTES].tobytes() for at in range(0, data.size, BLOCK_BYTES)]
    assert len({fails(block) for block in blocks}) == 2


@pytest.mark.usefixtures("pretended")
def test_the_host_compresses_what_does_not_fit_on_the_gpu(monkeypatch):
    data = hostile_data()
    small = BlocksOnGpu(most_blocks=2, lanes=2)
    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", lambda work: None)
    for blocks_on_gpu in (small, BlocksOnGpu(most_blocks=20, lanes=2)):
        for _ in range(3):
            found = blocks_of(blocks_on_gpu, data)
            for got, wanted in zip(found, compressed_blocks(data), strict=True):
                assert np.array_equal(got, wanted)
        blocks, ends = blocks_of(blocks_on_gpu, data[:0])
        assert not blocks.size
        assert not ends.size


@pytest.mark.usefixtures("pretended")
@pytest.mark.parametrize(("lanes_free", "made"), [(100, 5), (12, 3), (4.1, 1), (0.5, 1)])
def test_lanes_leave_memory_to_others(monkeypatch, lanes_free, made):
    """Lanes take a quarter of the free memory, but at least one is tried."""
    n_bytes = bgzf_blocks_cuda.lane_bytes(2)
    # At least two blocks, their compressed forms, and their positions in the file.
    assert n_bytes > 6 * BLOCK_BYTES
    monkeypatch.setattr(bgzf_blocks_cuda, "free_memory", lambda: int(lanes_free * n_bytes))
    tried = []
    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", lambda work: tried.append(work()) or tried[-1])
    blocks_on_gpu = BlocksOnGpu(most_blocks=2, lanes=5)
    assert blocks_of(blocks_on_gpu, hostile_data()[:10])[0].size
    wait_for_lanes()
    assert len(tried) == made


@pytest.mark.usefixtures("pretended")
def test_lanes_are_added_where_memory_has_become_free(monkeypatch):
    free, tried, has_room = 2 * bgzf_blocks_cuda.lane_bytes(2), [], True

    def count(work):
        tried.append(1)
        return work() if has_room else None

    def lanes_tried(share: float) -> int:
        before = len(tried)
        blocks_on_gpu.begin(share)
        wait_for_lanes()
        return len(tried) - before

    monkeypatch.setattr(bgzf_blocks_cuda, "free_memory", lambda: free)
    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", count)
    blocks_on_gpu = BlocksOnGpu(most_blocks=2, lanes=5)
    # The first is tried in any case, the others only if there is room.
    assert [lanes_tried(0.25), lanes_tried(0.25), lanes_tried(1)] == [1, 0, 2]
    # A lane whose allocation failed is tried again.
    free, has_room = 100 * free, False
    assert [lanes_tried(1), lanes_tried(1)] == [1, 1]
    has_room = True
    assert [lanes_tried(1), lanes_tried(1)] == [2, 0]
    assert blocks_of(blocks_on_gpu, hostile_data()[:10])[0].size


@pytest.mark.usefixtures("pretended")
def test_lanes_are_added_to_a_host_that_compressed_alone(monkeypatch):
    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", lambda work: None)
    data, blocks_on_gpu = hostile_data()[:10], BlocksOnGpu(most_blocks=2, lanes=5)
    assert np.array_equal(blocks_of(blocks_on_gpu, data)[0], compressed_blocks(data)[0])
    wait_for_lanes()
    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", lambda work: work())
    blocks_on_gpu.begin(1)
    wait_for_lanes()
    with ThreadPoolExecutor(6) as pool:
        for found in pool.map(lambda _: blocks_of(blocks_on_gpu, data), range(20)):
            assert_read_back(data, *found)
    assert blocks_on_gpu._free.qsize() == 6


@pytest.mark.usefixtures("pretended")
def test_existing_lanes_are_used_when_memory_runs_out(monkeypatch):
    tried = []

    def two_fit(work):
        tried.append(1)
        return work() if len(tried) <= 2 else None

    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", two_fit)
    data, blocks_on_gpu = hostile_data()[:10], BlocksOnGpu(most_blocks=2, lanes=5)
    made = [blocks_of(blocks_on_gpu, data)[0] for _ in range(6)]
    wait_for_lanes()
    assert len(tried) == 3
    assert all(np.array_equal(blocks, made[0]) for blocks in made)


@pytest.mark.usefixtures("pretended")
def test_a_gpu_that_fails_is_an_error(monkeypatch):
    def fail(work):
        raise OSError("the GPU is gone")

    monkeypatch.setattr(bgzf_blocks_cuda, "attempt", fail)
    blocks_on_gpu = BlocksOnGpu(most_blocks=2, lanes=1)
    for _ in range(2):
        with pytest.raises(OSError, match="the GPU is gone"):
            blocks_of(blocks_on_gpu, hostile_data()[:10])


@pytest.mark.gpu
@pytest.mark.skipif(
    not nvcomp.is_installed(), reason="needs nvCOMP: pip install nvidia-libnvcomp-cu13"
)
def test_the_gpu_gives_blocks_that_gzip_reads():
    blocks_on_gpu = BlocksOnGpu(most_blocks=20, lanes=2)
    pieces = [hostile_data()[:size] for size in sizes_to_try()]
    with ThreadPoolExecutor(5) as pool:
        made = pool.map(partial(blocks_of, blocks_on_gpu), 3 * pieces)
        for data, found in zip(3 * pieces, made, strict=True):
            assert_read_back(data, *found)
    assert found[0].size < data.size
