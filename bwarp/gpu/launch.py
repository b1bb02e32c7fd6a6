"""How many threads a kernel is launched with."""

__all__ = ["ALL_LANES", "WARP", "launch"]

#: Threads a block where nothing else is given.
BLOCK = 128

#: Threads a warp, and the mask of all of them.
WARP = 32
ALL_LANES = 0xFFFFFFFF


def launch(threads: int, block: int | None = None) -> tuple[int, int]:
    """Blocks and threads a block, for at least so many threads: ``kernel[launch(n)](...)``."""
    block = block or BLOCK
    return max(1, -(-threads // block)), block
