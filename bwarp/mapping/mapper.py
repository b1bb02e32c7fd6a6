"""From chunks of reads to SAM lines: the stages of mapping in a row."""

from collections.abc import Iterator

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.candidates_cpu import find_candidates
from bwarp.mapping.choice_cpu import Choice, choose_paired, choose_single
from bwarp.mapping.extension_cpu import Genome, Places, both_strands, extend
from bwarp.mapping.final_alignments import MappedReads, align_chosen
from bwarp.mapping.insert_size import InsertSize, estimate_insert_size
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.read_chunks import ReadChunk

__all__ = ["map_chunks"]


def map_chunks(
    index: FMIndex,
    genome: Genome,
    chunks: Iterator[ReadChunk],
    parameters: MappingParameters,
    threads: int = 1,
) -> Iterator[tuple[ReadChunk, np.ndarray, MappedReads, Choice]]:
    """Map every chunk; the insert size of pairs is estimated from the first one."""
    insert = None
    for chunk in chunks:
        both, places, left_out = place_reads(index, genome, chunk, parameters, threads)
        lengths = np.diff(chunk.offsets)
        if chunk.ends == 2 and insert is None:
            insert = estimate_insert_size(places, lengths, genome.contig_starts)
        choice = choose(chunk, genome, places, lengths, left_out, insert, parameters, threads)
        mapped = align_chosen(
            genome, both, chunk.offsets, places, choice.places, parameters, threads
        )
        yield chunk, both, mapped, choice


def place_reads(
    index: FMIndex,
    genome: Genome,
    chunk: ReadChunk,
    parameters: MappingParameters,
    threads: int,
) -> tuple[np.ndarray, Places, np.ndarray]:
    """Scored places of a chunk's reads, and the share of seed hits that was left out."""
    candidates = find_candidates(
        index, chunk.codes, chunk.offsets, parameters.seed_length, parameters.seed_step,
        parameters, threads,
    )  # fmt: skip
    both = both_strands(chunk.codes, chunk.offsets, threads)
    places = extend(genome, both, chunk.offsets, candidates, parameters, threads)
    return both, places, candidates.left_out


def choose(
    chunk: ReadChunk,
    genome: Genome,
    places: Places,
    lengths: np.ndarray,
    left_out: np.ndarray,
    insert: InsertSize | None,
    parameters: MappingParameters,
    threads: int,
) -> Choice:
    seeds = tie_seeds(chunk)
    if chunk.ends == 1:
        return choose_single(places, left_out, parameters, seeds)
    return choose_paired(
        places, lengths, left_out, insert, parameters, seeds, genome.contig_starts, threads
    )


def tie_seeds(chunk: ReadChunk) -> np.ndarray:
    """A number a read that breaks ties: of its template, so that it does not depend on chunks."""
    templates = np.arange(chunk.n_reads, dtype=np.uint64) // np.uint64(chunk.ends)
    mixed = (templates + np.uint64(chunk.first_template + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(32))
