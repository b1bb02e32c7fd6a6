"""Read the JSON files that programs write about a run as data frames.

map, merge       one row per unit: its counts, with derived values
allmap           one row: the counts of its certificate
count-correct    one row per mapping quality
map-insert-size, allmap-insert-size
                 one row: mean, standard deviation, bounds and orientation
--timeline       one row per step of a thread, in seconds
"""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from bwarp.allmap.find import Certificate
from bwarp.errors import InputError
from bwarp.mapping.insert_size import read_insert_size
from bwarp.options.common import ORIENTATIONS
from bwarp.records.statistics import empty_statistics
from bwarp.report.mapping_summary import summarise
from bwarp.report.timeline_picture import parse_timeline

#: Statistics of map that are single numbers.
_NUMBERS = [name for name, none in empty_statistics().items() if isinstance(none, int)]

_INSERT_SIZE = ("mean", "standard_deviation")

_TRUTH = ("correct", "incorrect", "random", "unmapped", "unmapped_random")


def statistics_frame(path: str | os.PathLike) -> pd.DataFrame:
    """Return the numbers in a JSON file of a run.

    Raises
    ------
    InputError
        If the file is something else.
    """
    for read in (_of_map, _of_allmap, _of_truth, _of_insert_size, _of_timeline):
        try:
            return read(Path(path))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, InputError):
            continue
    raise InputError(f"{path}: not statistics of bwarp: read other JSON with json.load")


def _of_map(path: Path) -> pd.DataFrame:
    counts = json.loads(path.read_bytes())
    units = counts.get("units", {path.name.removesuffix(".stats.json"): counts})
    return pd.DataFrame([_row(unit, statistics) for unit, statistics in units.items()])


def _row(unit: str, statistics: dict) -> dict:
    summary, size = summarise(statistics), statistics["insert_size"] or {}
    return {
        "unit": unit,
        **{name: statistics[name] for name in _NUMBERS},
        "duplicates": statistics["duplicates"] if "duplicates" in summary else float("nan"),
        "error_rate": summary["errors"] / 100,
        "mean_depth": summary.get("depth", 0.0),
        **{f"insert_size_{name}": size.get(name, float("nan")) for name in _INSERT_SIZE},
    }


def _of_allmap(path: Path) -> pd.DataFrame:
    counts = asdict(Certificate.read(path))
    del counts["reads_by_loci"]
    return pd.DataFrame([counts])


def _of_truth(path: Path) -> pd.DataFrame:
    counts = json.loads(path.read_bytes())
    table = pd.DataFrame({name: counts[name] for name in _TRUTH})
    return table.rename_axis("mapping_quality").reset_index()


def _of_insert_size(path: Path) -> pd.DataFrame:
    size = read_insert_size(path)
    return pd.DataFrame([size._asdict() | {"orientation": ORIENTATIONS[size.orientation]}])


def _of_timeline(path: Path) -> pd.DataFrame:
    steps, threads = parse_timeline(path.read_text())
    rows = [(step.name, threads[step.thread], step.start, step.end) for step in steps]
    return pd.DataFrame(rows, columns=("step", "thread", "start", "end"))
