"""The engine that maps chunks of reads on the CPU or on GPUs, and the number of reads per chunk."""

from collections.abc import Iterator
from functools import partial
from typing import Protocol

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import Genome, genome_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import CpuMapEngine, Encoder
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.runtime.threads import run_together

#: Reads of a chunk per thread, for at least two threads: with few threads there is little waiting
#: for the GIL, and chunks use most memory apart from the index.
READS_A_THREAD = 1 << 12


class MapEngine(Protocol):
    """An index and a genome, ready to map reads with fixed parameters.

    Attributes
    ----------
    sort_bytes : int
        Memory to store and sort records on the GPU; 0 if there is none, or too little.
    """

    index: FMIndex
    genome: Genome
    parameters: MappingParameters
    threads: int
    sort_bytes: int

    def map(self, chunks: Iterator[ReadChunk], encoder: Encoder | None = None) -> Iterator:
        """Map every chunk, in order; the results of all engines are the same.

        Yields
        ------
        MappedChunk
            Or, with an encoder, the `EncodedChunk` that it returns for each.
        """


def reads_a_chunk(backend: str, threads: int) -> int:
    """Return the number of reads per chunk: many for a GPU, few for few threads."""
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.READS_A_CHUNK
    return min(READS_A_CHUNK, READS_A_THREAD * max(threads, 2))


def load(
    index: FMIndex,
    parameters: MappingParameters,
    backend: str = "cpu",
    threads: int = 1,
    gpus: int = 1,
) -> MapEngine:
    """Load the genome and, in parallel, the index on up to `gpus` GPUs."""
    make_genome = partial(genome_of, index.reference, threads)
    if backend != "cuda":
        return CpuMapEngine(index, make_genome(), parameters, threads)
    from bwarp.gpu.several_gpus import on_each
    from bwarp.mapping.pipeline_cuda import GpuMapEngine
    from bwarp.mapping.seeding_rounds_cuda import prepare

    prepare_all = partial(on_each, partial(prepare, index, threads), gpus)
    genome, devices = run_together([make_genome, prepare_all], 2)
    return GpuMapEngine(index, genome, parameters, threads, devices)
