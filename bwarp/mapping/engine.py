"""The engine that maps chunks of reads: what it keeps for that, and how many reads it takes."""

from collections.abc import Callable, Iterator

from bwarp.index.fm_index import FMIndex
from bwarp.mapping import pipeline
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.reference import codes_of
from bwarp.runtime.threads import run_together

__all__ = ["load", "map_chunks", "reads_a_chunk"]


def reads_a_chunk(backend: str) -> int:
    """Reads of a chunk that keep an engine busy: a GPU takes more at a time."""
    if backend == "cuda":
        from bwarp.mapping import seeding_rounds_cuda

        return seeding_rounds_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def load(index: FMIndex, backend: str = "cpu", threads: int = 1) -> tuple[Genome, object]:
    """The genome unpacked and, at the same time, what an engine keeps for all chunks."""

    def unpack() -> Genome:
        return Genome(codes_of(index.reference, threads), index.reference.contig_starts)

    if backend == "cuda":
        from bwarp.mapping import seeding_rounds_cuda

        return tuple(run_together([unpack, lambda: seeding_rounds_cuda.prepare(index, threads)], 2))
    return unpack(), None


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    backend: str = "cpu",
    threads: int = 1,
    kept: object = None,
    then: Callable = pipeline.itself,
) -> Iterator:
    """Map every chunk, in order; the result is the same with ``"cpu"`` and ``"cuda"``.

    Parameters
    ----------
    kept : optional
        What `load` has returned with the genome.
    then : function of MappedChunk
        Called in a thread; what it returns is yielded instead of the chunk.
    """
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.map_chunks(index, genome, chunks, parameters, threads, kept, then)
    return pipeline.map_chunks(index, genome, chunks, parameters, threads, then)
