"""The engine that maps chunks of reads: what it keeps for that, and how many reads it takes."""

from collections.abc import Callable, Iterator
from functools import partial

from bwarp.index.fm_index import FMIndex
from bwarp.mapping import pipeline
from bwarp.mapping.extension_cpu import Genome, genome_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk
from bwarp.records.output_options import RecordForm
from bwarp.runtime.threads import run_together

#: Reads of a chunk for each thread, of two at least: few threads seldom wait for Python's lock, and
#: all they keep but the index is chunks.
READS_A_THREAD = 1 << 12

#: The share of a GPU's memory that mapping leaves free which may hold records, the least that is
#: worth it, and the most: all is taken at once, and given back at the end.
SORT_SHARE = 0.75
LEAST_SORT_BYTES, MOST_SORT_BYTES = 2 << 30, 32 << 30

#: About what a read of 150 bases takes on the GPU while its record is to be written, and that.
BYTES_A_FINISHED_READ, BYTES_A_RECORD = 850, 400

#: Groups of records beside those in work: one that is being kept, and one to spare.
WAITING_GROUPS = 2


def reads_a_chunk(backend: str, threads: int) -> int:
    """Reads of a chunk: a GPU takes many of them, few threads are to keep little."""
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.READS_A_CHUNK
    return min(READS_A_CHUNK, READS_A_THREAD * max(threads, 2))


def load(
    index: FMIndex, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> tuple[Genome, object]:
    """The genome and, at the same time, what an engine keeps for all chunks: of up to `gpus` GPUs
    what each keeps.
    """
    make_genome = partial(genome_of, index.reference, threads)
    if backend == "cuda":
        from bwarp.gpu.several_gpus import on_each
        from bwarp.mapping import seeding_rounds_cuda

        prepare = partial(seeding_rounds_cuda.prepare, index, threads)
        return tuple(run_together([make_genome, partial(on_each, prepare, gpus)], 2))
    return make_genome(), None


def sort_bytes_on_gpu(backend: str, kept: object) -> int:
    """Memory to keep records on the GPU and sort them: most of what mapping leaves free there.

    Of several GPUs the first one sorts what all have found. 0 where that is too little to be worth
    it.
    """
    if backend != "cuda":
        return 0
    from bwarp.mapping import pipeline_cuda

    plan, groups = kept[0].index.plan, pipeline_cuda.FINISHED_GROUPS
    # The plan counts the group that has its turn; the others, and what came of them, lie beside it.
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
    """Map every chunk, in order; the result is the same with ``"cpu"`` and ``"cuda"``.

    Parameters
    ----------
    kept : optional
        What `load` has returned with the genome.
    then : function of MappedChunk
        Called in a thread; what it returns is yielded instead of the chunk.
    form : RecordForm, optional
        A GPU may write the records itself, in this form; then `then` returns an `EncodedChunk`.
    """
    if backend == "cuda":
        from bwarp.mapping import pipeline_cuda

        return pipeline_cuda.map_chunks(
            index, genome, chunks, parameters, threads, kept or (), then, form
        )
    return pipeline.map_chunks(index, genome, chunks, parameters, threads, then)
