"""Warn of names of contigs, and prepare an index for the GPUs that options name.

Programs that do not map reads import this module, but not the modules that map them.
"""

import argparse
from collections.abc import Callable
from typing import TypeVar

from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.alt_contigs import named_like_alt
from bwarp.index.chunks import ChunkedIndex
from bwarp.index.store import StoredIndex
from bwarp.reference import Reference
from bwarp.runtime.chunks import on_each_gpu
from bwarp.runtime.progress import say

Prepared = TypeVar("Prepared")

#: Maximum number of contigs named in a warning.
MOST_NAMED = 5


def warn_of_names_like_alt(reference: Reference) -> None:
    """Warn if contigs are named like ALT contigs but none is listed as one."""
    names = named_like_alt(reference.names)
    if names and not reference.alt:
        shown = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
        say(
            f"warning: {counted(len(names), 'contig looks', 'contigs look')} like ALT contigs "
            f"({shown}), but none is listed as one, so reads that align to them get low mapping "
            "qualities: list them in REF.fa.alt next to the reference and index again, or use "
            "--alt when mapping"
        )


def check_spread(options: argparse.Namespace, index: StoredIndex | ChunkedIndex | None) -> None:
    """Raise an error if --spread is given, but not an index in chunks."""
    if options.spread and not isinstance(index, ChunkedIndex):
        raise UsageError(
            "--spread requires an index in chunks: build one with bwarp index REF.fa -o INDEX "
            "--chunk-bases N"
        )


def prepare_on_gpus(
    prepare: Callable[..., Prepared], backend: str, options: argparse.Namespace
) -> list[Prepared]:
    """Return ``prepare()`` on each GPU; with --spread, ``prepare(gpus=N)``, one for all GPUs."""
    if options.spread:
        return [prepare(gpus=options.gpus)]
    return on_each_gpu(prepare, backend, options.gpus)
