"""BGZF blocks: gzip and htslib read them, and damage is reported."""

import gzip
import itertools

import numpy as np
import pytest

from bwarp.bam import bgzf as bgzf_blocks
from bwarp.bam.bgzf import (
    BLOCK_BYTES,
    END_OF_FILE,
    LEVEL,
    compressed_block,
    compressed_blocks,
    inflated_blocks,
    read_bgzf,
    whole_blocks,
)
from bwarp.errors import InputError


@pytest.fixture
def data() -> bytes:
    rng = np.random.default_rng(1)
    return rng.integers(0, 256, BLOCK_BYTES).astype(np.uint8).tobytes() + b"ACGT" * 40_000 + b"x"


def blocks_of(data: bytes) -> bytes:
    pieces = (data[at : at + BLOCK_BYTES] for at in range(0, len(data), BLOCK_BYTES))
    return b"".join(map(compressed_block, pieces)) + END_OF_FILE


def test_round_trip(data, tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(blocks_of(data))
    assert gzip.decompress(path.read_bytes()) == data
    for threads, blocks_at_once in ((1, 1), (3, 2)):
        with open(path, "rb") as file:
            assert b"".join(read_bgzf(file, path, threads, blocks_at_once)) == data


def test_blocks_fit_with_any_content(data):
    hard = compressed_block(data[:BLOCK_BYTES])
    assert BLOCK_BYTES < len(hard) <= 1 << 16
    assert int.from_bytes(hard[16:18], "little") == len(hard) - 1
    assert compressed_block(np.frombuffer(data, np.uint8)[:BLOCK_BYTES]) == hard


@pytest.mark.parametrize("level", [0, LEVEL])
def test_many_blocks_are_those_made_one_by_one(data, monkeypatch, level):
    def made(data):
        blocks, ends = compressed_blocks(np.array(bytearray(data), np.uint8), level)
        starts = [0, *ends.tolist()]
        assert blocks.size == starts[-1]
        return [blocks[a:b].tobytes() for a, b in itertools.pairwise(starts)]

    for part in (data, data[: 2 * BLOCK_BYTES], data[:1], b"", bytes(100_000)):
        pieces = [part[at : at + BLOCK_BYTES] for at in range(0, len(part), BLOCK_BYTES)]
        expected = [compressed_block(piece, level) for piece in pieces]
        assert gzip.decompress(b"".join(expected)) == part
        if level == 0:
            assert sum(map(len, expected)) > len(part) or not part
        assert made(part) == expected
        with monkeypatch.context() as patch:
            patch.setattr(bgzf_blocks, "_library", lambda: None)
            assert made(part) == expected
    assert bgzf_blocks._library() is not None


def test_blocks_are_inflated_as_far_as_they_are_whole(data, monkeypatch):
    packed = np.frombuffer(blocks_of(data), np.uint8)
    assert whole_blocks(packed) == (packed.size, len(data))
    assert inflated_blocks(packed, len(data)).tobytes() == data
    first = int.from_bytes(packed[16:18], "little") + 1
    for behind in (packed[first : first + 40], packed[:17], np.frombuffer(b"x" * 40, np.uint8)):
        assert whole_blocks(np.concatenate([packed[:first], behind])) == (first, BLOCK_BYTES)
    assert whole_blocks(packed[: first - 1]) == (0, 0)
    assert whole_blocks(np.frombuffer(gzip.compress(data), np.uint8)) == (0, 0)
    with monkeypatch.context() as patch:
        patch.setattr(bgzf_blocks, "_library", lambda: None)
        assert inflated_blocks(packed, len(data)) is None
    for at in (20, 30_000, first - 8, first - 1, first + 60):
        flipped = packed.copy()
        flipped[at] ^= 1
        end, size = whole_blocks(flipped)
        assert end == 0 if at == first - 1 else inflated_blocks(flipped[:end], size) is None


def test_damage(data, tmp_path):
    path = tmp_path / "x.bam"
    whole = blocks_of(data)
    cut_off = f"{path}: the file is truncated: write it again"
    damaged = f"{path}: not a BAM file, or damaged: write it again"
    flipped = bytearray(whole)
    flipped[30_000] ^= 1
    for content, message in (
        (whole[:-1], cut_off),
        (whole[: -len(END_OF_FILE)], cut_off),
        (whole[: -len(END_OF_FILE) - 5], cut_off),
        (b"", cut_off),
        (bytes(flipped), damaged),
        (gzip.compress(data), damaged),
        (data, damaged),
    ):
        path.write_bytes(content)
        with open(path, "rb") as file, pytest.raises(InputError) as error:
            list(read_bgzf(file, path))
        assert str(error.value) == message
