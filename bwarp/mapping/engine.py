"""Which engine maps chunks of reads, and how many it wants at a time."""

from collections.abc import Iterator

from bwarp.index.fm_index import FMIndex
from bwarp.mapping import mapper
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.mapper import MappedChunk
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.read_chunks import READS_A_CHUNK, ReadChunk

__all__ = ["map_chunks", "reads_a_chunk"]


def reads_a_chunk(backend: str) -> int:
    """Reads of a chunk that keep an engine busy: a GPU takes more at a time."""
    if backend == "cuda":
        from bwarp.mapping import placing_cuda

        return placing_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    backend: str = "cpu",
    threads: int = 1,
) -> Iterator[MappedChunk]:
    """Map every chunk, in order; with ``"cpu"`` and ``"cuda"`` what comes is the same."""
    if backend == "cuda":
        from bwarp.mapping import mapper_cuda

        return mapper_cuda.map_chunks(index, genome, chunks, parameters, threads)
    return mapper.map_chunks(index, genome, chunks, parameters, threads)
