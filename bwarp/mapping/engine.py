"""Which engine maps chunks of reads, what it keeps for that, and how many it wants at a time."""

from collections.abc import Iterator

from bwarp.index.fm_index import FMIndex
from bwarp.mapping import mapper
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.mapper import MappedChunk
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.reference import codes_of
from bwarp.threads import run_together

__all__ = ["load", "map_chunks", "reads_a_chunk"]


def reads_a_chunk(backend: str) -> int:
    """Reads of a chunk that keep an engine busy: a GPU takes more at a time."""
    if backend == "cuda":
        from bwarp.mapping import placing_cuda

        return placing_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def load(index: FMIndex, backend: str = "cpu", threads: int = 1) -> tuple[Genome, object]:
    """The genome unpacked and, side by side with that, what an engine keeps for all chunks."""

    def unpack() -> Genome:
        return Genome(codes_of(index.reference, threads), index.reference.contig_starts)

    if backend == "cuda":
        from bwarp.mapping import placing_cuda

        return tuple(run_together([unpack, lambda: placing_cuda.prepare(index, threads)], 2))
    return unpack(), None


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    backend: str = "cpu",
    threads: int = 1,
    kept: object = None,
) -> Iterator[MappedChunk]:
    """Map every chunk, in order; with ``"cpu"`` and ``"cuda"`` what comes is the same.

    Parameters
    ----------
    kept : optional
        What `load` has returned with the genome.
    """
    if backend == "cuda":
        from bwarp.mapping import mapper_cuda

        return mapper_cuda.map_chunks(index, genome, chunks, parameters, threads, kept)
    return mapper.map_chunks(index, genome, chunks, parameters, threads)
