"""The engine that finds loci: what it keeps for that, and how many reads it takes at a time."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType

from bwarp.index.fm_index import FMIndex
from bwarp.loci import find_cpu
from bwarp.loci.find_cpu import TextAndGenome
from bwarp.loci.options import ALL, LocusOptions
from bwarp.mapping.reads.read_chunks import READS_A_CHUNK
from bwarp.runtime.threads import run_together

__all__ = ["load", "loci_finder", "reads_a_chunk", "steps_of"]


#: Reads of a chunk where all their loci are wanted: in a large genome that is hundreds a read, and
#: many chunks are in work.
READS_WITH_ALL = 1 << 13


def reads_a_chunk(backend: str, options: LocusOptions) -> int:
    """Reads of a chunk that keep an engine busy."""
    if options.strata == ALL:
        return READS_WITH_ALL
    if backend == "cuda":
        from bwarp.loci import find_cuda

        return find_cuda.READS_A_CHUNK
    return READS_A_CHUNK


def load(
    index: FMIndex, backend: str = "cpu", threads: int = 1, gpus: int = 1
) -> tuple[TextAndGenome, list | None]:
    """What loci are verified against and, at the same time, what each of `gpus` GPUs keeps."""
    make_genome = partial(find_cpu.load, index.reference, threads)
    if backend == "cuda":
        from bwarp.gpu.several_gpus import on_each
        from bwarp.loci import find_cuda

        prepare = partial(find_cuda.prepare, index, threads)
        return tuple(run_together([make_genome, partial(on_each, prepare, gpus)], 2))
    return make_genome(), None


def loci_finder(
    index: FMIndex, genome: TextAndGenome, options: LocusOptions, kept: list | None = None
) -> Callable:
    """A function that finds all loci of a batch of reads, for several threads at once.

    ``find(both, blocks, offsets)`` takes and returns what `bwarp.loci.find_cpu.find_batch` does,
    with either engine the same.

    Parameters
    ----------
    kept : list, optional
        What `load` has returned with the genome: with it, loci are found on the GPUs.
    """
    if kept is None:
        return lambda both, blocks, offsets: find_cpu.find_batch(
            index, genome, both, blocks, offsets, options
        )
    from bwarp.gpu.several_gpus import LeastBusy
    from bwarp.loci.find_cuda import LociFinder

    finders = LeastBusy([LociFinder(index, genome, device, options) for device in kept])

    def find(both, blocks, offsets):
        with finders.lent() as finder:
            return finder.find_batch(both, blocks, offsets)

    return find


def steps_of(backend: str) -> ModuleType:
    """The steps of the chain, each alone: `bwarp.loci.steps_cpu` or its twin."""
    return import_module(f"bwarp.loci.steps_{backend}")
