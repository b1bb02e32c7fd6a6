"""Counts of what became of the reads; they add up."""

import numpy as np

from bwarp.mapping.mapper import MappedChunk

__all__ = ["add_chunk", "empty_statistics", "merged_statistics"]


def empty_statistics() -> dict:
    """Counts of no reads; `mapping_qualities` has one count a quality from 0 to 60."""
    return {
        "reads": 0,
        "bases": 0,
        "mapped": 0,
        "unmapped": 0,
        "properly_paired": 0,
        "insert_size": None,
        "mapping_qualities": [0] * 61,
    }


def add_chunk(statistics: dict, done: MappedChunk) -> None:
    """Add the counts of a chunk, in place."""
    chunk, mapped, choice = done.chunk, done.mapped, done.choice
    has_place = mapped.positions >= 0
    n_mapped = int(np.count_nonzero(has_place))
    statistics["reads"] += chunk.n_reads
    statistics["bases"] += int(chunk.offsets[-1])
    statistics["mapped"] += n_mapped
    statistics["unmapped"] += chunk.n_reads - n_mapped
    statistics["properly_paired"] += int(np.count_nonzero(choice.proper))
    if done.insert.highest:
        statistics["insert_size"] = {
            "mean": round(done.insert.mean, 3),
            "deviation": round(done.insert.deviation, 3),
            "lowest": done.insert.lowest,
            "highest": done.insert.highest,
        }
    counts = np.bincount(choice.qualities[has_place], minlength=61)
    statistics["mapping_qualities"] = [
        int(old + new) for old, new in zip(statistics["mapping_qualities"], counts, strict=True)
    ]


def merged_statistics(units: dict[str, dict]) -> dict:
    """The sums of the units' counts, and under `units` each by itself; insert sizes are theirs."""
    merged = empty_statistics()
    del merged["insert_size"]
    for statistics in units.values():
        for key, value in merged.items():
            more = statistics[key]
            merged[key] = (
                [old + new for old, new in zip(value, more, strict=True)]
                if isinstance(value, list)
                else value + more
            )
    return merged | {"units": units}
