"""All parts of an index, for comparison."""

from dataclasses import fields

import numpy as np


def parts_of(index) -> dict[str, object]:
    """Return all parts of an index by name."""
    parts = {name: getattr(index, name) for name in ("occ_rate", "sa_rate", "prefix_length")}
    parts |= {name: getattr(index, name) for name in ("prefix_table", "suffix_array")}
    for owner in ("reference", "forward", "reverse"):
        held = getattr(index, owner)
        parts |= {f"{owner}.{field.name}": getattr(held, field.name) for field in fields(held)}
    return parts


def assert_equal_indexes(index, other) -> None:
    for name, part in parts_of(index).items():
        again = parts_of(other)[name]
        if isinstance(part, np.ndarray):
            assert part.dtype == again.dtype, name
            assert part.shape == again.shape, name
        assert np.array_equal(part, again), name
