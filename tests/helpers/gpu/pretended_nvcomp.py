"""nvCOMP for a simulated GPU, by zlib."""

import zlib

import numpy as np

from bwarp.bam import bgzf_cuda as bgzf_blocks_cuda
from bwarp.gpu import nvcomp


def pretend_nvcomp(monkeypatch) -> None:
    monkeypatch.setattr(nvcomp, "room_of", lambda size: size + 64)
    monkeypatch.setattr(nvcomp, "scratch_bytes", lambda count, size: 8)
    monkeypatch.setattr(nvcomp, "addresses", lambda memory, step, _count: (memory, step))
    monkeypatch.setattr(nvcomp, "deflate", deflate_here)
    monkeypatch.setattr(bgzf_blocks_cuda, "free_memory", lambda: 1 << 30)


def fails(data: bytes) -> bool:
    """Return whether nvCOMP is to fail on these data: about a third of all."""
    return zlib.crc32(data) % 3 == 0


def deflate_here(blocks, sizes, _largest, count, _scratch, outs, packed, _stream):
    """Replace `nvcomp.deflate`; the size 0 means failure."""
    (raw, step), (out, room) = blocks, outs
    for i, size in enumerate(np.array(sizes[:count]).astype(int)):
        data = np.array(raw[step * i : step * i + size]).tobytes()
        compressor = zlib.compressobj(1, zlib.DEFLATED, -15)
        done = compressor.compress(data) + compressor.flush()
        packed[i] = 0
        if not fails(data):
            out[room * i : room * i + len(done)] = np.frombuffer(done, np.uint8)
            packed[i] = len(done)
