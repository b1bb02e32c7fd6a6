"""The platform unit (PU) of a read group from the name of a read: flow cell and lane.

@A00123:45:HXXXXDSXX:2:1101:1000:2000      HXXXXDSXX.2      Illumina and Element
@V350012345L1C001R00100000001              V350012345.1     MGI and DNBSEQ
"""

import re
from collections.abc import Iterator
from itertools import chain

from bwarp.errors import InputError
from bwarp.mapping.reads.read_chunks import ReadChunk

__all__ = ["AUTO", "platform_unit", "with_platform_unit"]

#: What a read group says whose platform unit is to be found.
AUTO = "PU:auto"

_NAMES = (
    re.compile(r"[^:]+:[0-9]+:(?P<cell>[A-Za-z0-9-]+):(?P<lane>[0-9]+):[0-9]+:[0-9]+:[0-9]+(:.*)?"),
    re.compile(r"(?P<cell>[A-Z]+[0-9]+)L(?P<lane>[0-9])C[0-9]{3}R[0-9]+.*"),
)


def platform_unit(name: str) -> str | None:
    """Flow cell and lane that a read's name tells, with a point between; None if it tells none."""
    found = next(filter(None, (pattern.fullmatch(name) for pattern in _NAMES)), None)
    return found and f"{found['cell']}.{found['lane']}"


def with_platform_unit(
    read_group: str, chunks: Iterator[ReadChunk]
) -> tuple[str, Iterator[ReadChunk]]:
    """A read group with the platform unit of the first read, and the same chunks.

    Without reads the group has none.

    Raises
    ------
    InputError
        If the read's name tells none.
    """
    fields = read_group.split("\t")
    first = next(chunks, None)
    if first is None:
        return "\t".join(field for field in fields if field != AUTO), chunks
    unit = platform_unit(first.name(0))
    if unit is None:
        raise InputError(
            f"read {first.name(0)!r}: its name does not tell flow cell and lane, as those of "
            "Illumina, Element and MGI do: write the platform unit in place of auto"
        )
    group = "\t".join(f"PU:{unit}" if field == AUTO else field for field in fields)
    return group, chain([first], chunks)
