"""Counts of what became of the reads; they add up."""

import json
import os

import numpy as np

from bwarp.alignment.pairs import DELETION, MATCH
from bwarp.errors import InputError
from bwarp.io.atomic_output import atomic_file
from bwarp.mapping.output.final_alignments import MappedReads
from bwarp.mapping.parameters import ORIENTATIONS
from bwarp.mapping.pipeline import MappedChunk

__all__ = [
    "INSERT_BIN",
    "add_chunk",
    "empty_statistics",
    "merged_statistics",
    "parse_statistics",
    "read_statistics",
    "statistics_sentence",
    "write_statistics",
]

#: Bases a bin of `insert_sizes`, and how many bins there are; the last has all that is longer.
INSERT_BIN, INSERT_BINS = 10, 201

#: What counts were called by the first programs, whose files may be merged with newer ones.
_RENAMED = {
    "places scored": "hits scored",
    "places with gaps": "hits with gaps",
    "deviation": "standard_deviation",
}

STAGES = (
    "reads",
    "seeds searched",
    "hits located",
    "candidates",
    "hits scored",
    "hits with gaps",
    "reads mapped",
    "reads of quality 30",
)


def empty_statistics() -> dict:
    """Counts of no reads.

    `mapping_qualities` has one count of reads a quality from 0 to 60, and `insert_sizes` one of
    proper pairs for every `INSERT_BIN` bases from the first base of a pair to its last. `stages`
    has what there was after each stage, in their order. `paired` counts reads that came in pairs;
    `duplicates` is None where nobody looked for them.
    """
    return {
        "reads": 0,
        "bases": 0,
        "mapped": 0,
        "unmapped": 0,
        "paired": 0,
        "properly_paired": 0,
        "duplicates": None,
        "insert_size": None,
        "mapping_qualities": [0] * 61,
        "insert_sizes": [0] * INSERT_BINS,
        "stages": dict.fromkeys(STAGES, 0),
    }


def add_chunk(statistics: dict, done: MappedChunk) -> None:
    """Add the counts of a chunk, in place."""
    chunk, mapped, primary = done.chunk, done.mapped, done.primary
    is_mapped = mapped.positions >= 0
    n_mapped = int(np.count_nonzero(is_mapped))
    statistics["reads"] += chunk.n_reads
    statistics["bases"] += int(chunk.offsets[-1])
    statistics["mapped"] += n_mapped
    statistics["unmapped"] += chunk.n_reads - n_mapped
    statistics["paired"] += chunk.n_reads if chunk.ends == 2 else 0
    statistics["properly_paired"] += int(np.count_nonzero(primary.proper))
    if done.insert.highest:
        statistics["insert_size"] = {
            "mean": round(done.insert.mean, 3),
            "standard_deviation": round(done.insert.standard_deviation, 3),
            "lowest": done.insert.lowest,
            "highest": done.insert.highest,
            "orientation": ORIENTATIONS[done.insert.orientation],
        }
    counts = np.bincount(primary.qualities[is_mapped], minlength=61)
    statistics["mapping_qualities"] = [
        int(old + new) for old, new in zip(statistics["mapping_qualities"], counts, strict=True)
    ]
    _add(statistics["stages"], _stages(done, n_mapped))
    if chunk.ends == 2:
        counts = _insert_sizes(mapped, primary.proper)
        statistics["insert_sizes"] = [
            int(old + new) for old, new in zip(statistics["insert_sizes"], counts, strict=True)
        ]


def _stages(done: MappedChunk, n_mapped: int) -> dict[str, int]:
    gapped = np.count_nonzero(~done.hits.gapless)
    confident = np.count_nonzero((done.primary.qualities >= 30) & (done.mapped.positions >= 0))
    scored = done.hits.gapless.size
    counts = (done.chunk.n_reads, *done.searched, scored, gapped, n_mapped, confident)
    return dict(zip(STAGES, map(int, counts), strict=True))


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for key, value in more.items():
        counts[key] += value


def _insert_sizes(mapped: MappedReads, proper: np.ndarray) -> np.ndarray:
    """How many proper pairs there are of every insert size."""
    lengths = np.where(np.isin(mapped.cigar & 15, (MATCH, DELETION)), mapped.cigar >> 4, 0)
    before = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=before[1:])
    spans = np.diff(before[mapped.cigar_offsets])
    starts = mapped.positions.reshape(-1, 2)[proper[::2]]
    stops = starts + spans.reshape(-1, 2)[proper[::2]]
    sizes = stops.max(axis=1) - starts.min(axis=1)
    bins = np.minimum(sizes // INSERT_BIN, INSERT_BINS - 1)
    return np.bincount(bins, minlength=INSERT_BINS)


def statistics_sentence(statistics: dict) -> str:
    """The counts in a line; single reads are in no pairs, and duplicates only where looked for."""
    parts = [f"{statistics['reads']:,} reads", f"{statistics['mapped']:,} mapped"]
    if statistics["paired"]:
        parts.append(f"{statistics['properly_paired']:,} properly paired")
    if statistics["duplicates"] is not None:
        parts.append(f"{statistics['duplicates']:,} duplicates")
    return ", ".join(parts)


def write_statistics(path: str | os.PathLike, statistics: dict) -> None:
    with atomic_file(path, "w") as file:
        file.write(json.dumps(statistics, indent=1) + "\n")


def parse_statistics(text: str | bytes):
    """The content of a file of counts, with what was renamed under its name of today."""

    def renamed(counts: dict) -> dict:
        # Units may have any name, and are dictionaries.
        return {
            name if isinstance(value, dict) else _RENAMED.get(name, name): value
            for name, value in counts.items()
        }

    return json.loads(text, object_hook=renamed)


def read_statistics(path: str | os.PathLike) -> dict:
    """The counts that `map_reads.py --stats` wrote.

    Raises
    ------
    InputError
        For a file of anything else.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        statistics = parse_statistics(content)
        whole = all(_alike(statistics[key], like) for key, like in empty_statistics().items())
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise InputError(f"{path}: not the counts that map_reads.py writes: map these reads again")
    return statistics


def _alike(value, like) -> bool:
    """Whether a count is one, and a list or dictionary has the same ones; sizes may be none."""
    if isinstance(like, list):
        return len(value) == len(like) and all(type(count) is int for count in value)
    if isinstance(like, dict):
        return list(value) == list(like) and all(type(value[name]) is int for name in like)
    return type(value) is int or like is None


def merged_statistics(units: dict[str, dict], duplicates: int | None) -> dict:
    """The sums of the units' counts, and under `units` each by itself; insert sizes are theirs.

    `duplicates` are those found among all units, None where only the units' own are marked.
    """
    merged = empty_statistics()
    del merged["insert_size"], merged["duplicates"]
    for statistics in units.values():
        for key, value in merged.items():
            more = statistics[key]
            if isinstance(value, dict):
                _add(value, more)
            elif isinstance(value, list):
                merged[key] = [old + new for old, new in zip(value, more, strict=True)]
            else:
                merged[key] = value + more
    of_units = [statistics["duplicates"] for statistics in units.values()]
    if duplicates is None and None not in of_units:
        duplicates = sum(of_units)
    return merged | {"duplicates": duplicates, "units": units}
