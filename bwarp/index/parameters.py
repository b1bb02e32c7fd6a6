"""What a user may choose of an index, and the defaults that depend on the size."""

from dataclasses import dataclass

from bwarp.options.mapping import INDEX

__all__ = ["IndexParameters", "choose_parameters"]


@dataclass(frozen=True)
class IndexParameters:
    """occ_rate is the paper's q, sa_rate its p; prefix_length 0 means no prefix table."""

    occ_rate: int
    sa_rate: int
    prefix_length: int


def choose_parameters(
    text_length: int,
    occ_rate: int = INDEX["occ_rate"].default,
    sa_rate: int = INDEX["sa_rate"].default,
    prefix_length: int | str | None = None,
) -> IndexParameters:
    """Check what was chosen, and choose the prefix length by the text's length where it was not.

    The longest table is chosen that takes no more than about two bytes a base, up to 13: it saves
    the most random reads a search, and stays within what a GPU's cache likes.
    """
    INDEX["occ_rate"].check(occ_rate)
    INDEX["sa_rate"].check(sa_rate)
    prefix_length = INDEX["prefix_length"].check(prefix_length)
    if prefix_length is None:
        prefix_length = 4
        while prefix_length < 13 and 8 * 4 ** (prefix_length + 1) <= 2.2 * text_length:
            prefix_length += 1
    return IndexParameters(occ_rate, sa_rate, prefix_length)
