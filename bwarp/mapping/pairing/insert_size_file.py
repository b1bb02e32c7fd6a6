"""The insert size of a unit in a file, JSON: estimated once, for all jobs that map some of it."""

import json
import os
from pathlib import Path

from bwarp.errors import InputError
from bwarp.mapping.pairing.insert_size import InsertSize
from bwarp.mapping.parameters import ORIENTATIONS

__all__ = ["insert_size_text", "read_insert_size"]


def insert_size_text(insert: InsertSize) -> str:
    """An insert size as JSON, with the name of its orientation."""
    named = insert._asdict() | {"orientation": ORIENTATIONS[insert.orientation]}
    return json.dumps(named, indent=1) + "\n"


def read_insert_size(path: str | os.PathLike) -> InsertSize:
    """What `insert_size_text` is of.

    Raises
    ------
    InputError
        For a file of anything else.
    """
    kinds = {"mean": float, "standard_deviation": float, "lowest": int, "highest": int}
    try:
        named = json.loads(Path(path).read_bytes())
        orientation = ORIENTATIONS.index(named.pop("orientation"))
        insert = InsertSize(**named, orientation=orientation)
        whole = {name: type(value) for name, value in named.items()} == kinds
        whole &= all(0 <= value < 1 << 31 for value in named.values())
        whole &= insert.lowest <= insert.highest
        # Either nothing is known, or all of it.
        whole &= insert.standard_deviation >= (insert.highest > 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise InputError(
            f"{path}: not an insert size that estimate_map_insert_size.py or "
            "estimate_allmap_insert_size.py wrote: make it again"
        )
    return insert
