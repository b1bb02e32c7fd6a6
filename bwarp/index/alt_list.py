"""The list of ALT contigs beside a reference, as bwa has it: genome.fa.alt.

The workflow asks for it, too: nothing is imported here that takes long.
"""

import os
from pathlib import Path

__all__ = ["alt_list_beside"]

#: Endings of compressed references; the list may be named without.
_COMPRESSED = (".gz", ".bgz", ".bz2", ".xz", ".zst")


def alt_list_beside(path: str | os.PathLike) -> Path | None:
    """The list of ALT contigs beside a reference, if there is one."""
    path = Path(path)
    names = [path.name, path.stem] if path.suffix in _COMPRESSED else [path.name]
    lists = [path.with_name(f"{name}.alt") for name in names]
    return next((file for file in lists if file.is_file()), None)
