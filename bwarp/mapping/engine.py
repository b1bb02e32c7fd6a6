"""Choose the engine that maps chunks of reads, its state, and the number of reads per chunk."""

from collections.abc import Callable, Iterator
from functools import partial

from bwarp.index.fm_index import FMIndex
from bwarp.mapping import pipeline
from bwarp.mapping.extension_cpu import Genome, genome_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.records.output_options import RecordForm
from bwarp.runtime.threads import run_together

#: Reads of a chunk per thread, for at least two threads: with few threads there is little waiting
#: for the GIL, and chunks use most memory apart from the index.
READS_A_THREAD = 1 << 12

#: The fraction of the GPU memory left by mapping that may hold records, and the minimum and maximum
#: of that memory, which is allocated at once and freed at the end.
SORT_SHARE = 0.75
LEAST_SORT_BYTES, MOST_SORT_BYTES = 2 << 30, 32 << 30

#: Approximate bytes on the GPU of a finished read of 150 bases, and of its record.
BYTES_A_FINISHED_READ, BYTES_A_RECORD = 850, 400

#: Groups of records in addition to those in work: one being stored, and one spare.
WAITING_GROUPS = 2


def reads_a_chunk(backend: str, threads: int) -> int:
    """Return the number of reads per chunk: many for a GPU, few for few threads."""
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.READS_A_CHUNK
    return min(READS_A_CHUNK, READS_A_THREAD * max(threads, 2))


def load(
    index: FMIndex, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> tuple[Genome, object]:
    """Load genome and engine state in parallel; return the state of each of up to `gpus` GPUs."""
    make_genome = partial(genome_of, index.reference, threads)
    if backend == "cuda":
        from bwarp.gpu.several_gpus import on_each
        from bwarp.mapping import seeding_rounds_cuda

        prepare = partial(seeding_rounds_cuda.prepare, index, threads)
        return tuple(run_together([make_genome, partial(on_each, prepare, gpus)], 2))
    return make_genome(), None


def sort_bytes_on_gpu(backend: str, kept: object) -> int:
    """Return the memory to store and sort records on the GPU: most of what mapping leaves free.

    With several GPUs, the first sorts all records. Return 0 if the memory is too small to be
    useful.
    """
    if backend != "cuda":
        return 0
    from bwarp.mapping import pipeline_cuda

    plan, groups = kept[0].index.plan, pipeline_cuda.FINISHED_GROUPS
    # The plan counts the group in work; add the other groups and their records.
    bytes_a_read = (groups - 1) * BYTES_A_FINISHED_READ + (groups + WAITING_GROUPS) * BYTES_A_RECORD
    most = pipeline_cuda.MOST_FINISHED * pipeline_cuda.READS_A_CHUNK
    beside = min(most, plan.elements) * bytes_a_read
    left = plan.free_bytes - plan.index_bytes - plan.work_bytes - beside
    shared = int(SORT_SHARE * left)
    return min(shared, MOST_SORT_BYTES) if shared >= LEAST_SORT_BYTES else 0


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    backend: str = "cpu",
    threads: int = 1,
    kept: object = None,
    then: Callable = pipeline.itself,
    form: RecordForm | None = None,
) -> Iterator:
    """Map every chunk, in order; the results of ``"cpu"`` and ``"cuda"`` are the same.

    Parameters
    ----------
    kept : optional
        The engine state returned by `load`.
    then : function of MappedChunk
        Called in a thread; its result is yielded instead of the chunk.
    form : RecordForm, optional
        If given, a GPU may write records in this form, and `then` returns an `EncodedChunk`.
    """
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.map_chunks(
            index, genome, chunks, parameters, threads, kept or (), then, form
        )
    return pipeline.map_chunks(index, genome, chunks, parameters, threads, then)
