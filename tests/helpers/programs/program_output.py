"""Removing lines from the output of programs that a test should ignore."""

import re

__all__ = ["without_progress"]


def without_progress(said: str) -> str:
    """Return output without lines that only appear on slow machines and in first runs."""
    return re.sub(
        r"^(compiling for this machine.*|[\d,]+ [\w-]+ done, .*|.*: done after .*)\n",
        "",
        said,
        flags=re.MULTILINE,
    )
