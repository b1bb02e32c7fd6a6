"""What programs say that a test should not wait for, nor stumble over."""

import re

__all__ = ["without_progress"]


def without_progress(said: str) -> str:
    """What a program said, without the lines that only slow machines and first runs have."""
    return re.sub(
        r"^(compiling for this machine.*|[\d,]+ [\w-]+ done, .*|.*: done after .*)\n",
        "",
        said,
        flags=re.MULTILINE,
    )
