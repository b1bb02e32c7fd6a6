"""Searches that need the BWT of the reversed text, and indexes that were made without it."""

import shlex

from bwarp.errors import UsageError
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import StoredIndex

__all__ = ["require_reverse"]


def require_reverse(index: FMIndex | StoredIndex, search: str) -> None:
    """Refuse a search, such as ``"a search with mismatches"``, of an index without the reverse."""
    if index.has_reverse:
        return
    if isinstance(index, StoredIndex):
        folder = index.folder
        raise UsageError(
            f"{folder} has no reverse BWT, which {search} needs: add it with: "
            f"scripts/index_reference.py -o {shlex.quote(str(folder))} --with-reverse"
        )
    raise UsageError(
        f"the index has no reverse BWT, which {search} needs: build it with with_reverse=True, "
        "or add it with its add_reverse()"
    )
