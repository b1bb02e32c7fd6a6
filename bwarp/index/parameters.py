"""What a user may choose of an index, its ranges, and the defaults that depend on the size."""

from dataclasses import dataclass

from bwarp.errors import UsageError

__all__ = ["IndexParameters", "choose_parameters"]

OCC_RATES = range(32, 1025, 32)
SA_RATES = range(1, 1025)
PREFIX_LENGTHS = range(15)

DEFAULT_OCC_RATE = 64
DEFAULT_SA_RATE = 4


@dataclass(frozen=True)
class IndexParameters:
    """occ_rate is the paper's q, sa_rate its p; prefix_length 0 means no prefix table."""

    occ_rate: int
    sa_rate: int
    prefix_length: int


def choose_parameters(
    text_length: int,
    occ_rate: int = DEFAULT_OCC_RATE,
    sa_rate: int = DEFAULT_SA_RATE,
    prefix_length: int | None = None,
) -> IndexParameters:
    """Check what was chosen, and choose the prefix length by the text's length where it was not.

    The longest table is chosen that takes no more than about two bytes a base, up to 13: it saves
    the most random reads a search, and stays within what a GPU's cache likes.
    """
    if occ_rate not in OCC_RATES:
        raise UsageError(
            f"occ_rate {occ_rate} cannot be used: it must be a multiple of 32 from "
            f"{OCC_RATES[0]} to {OCC_RATES[-1]}; 64 is good"
        )
    if sa_rate not in SA_RATES:
        raise UsageError(
            f"sa_rate {sa_rate} cannot be used: it must be from {SA_RATES[0]} to {SA_RATES[-1]}; "
            "1 keeps the whole suffix array"
        )
    if prefix_length is None:
        prefix_length = 4
        while prefix_length < 13 and 8 * 4 ** (prefix_length + 1) <= 2.2 * text_length:
            prefix_length += 1
    elif prefix_length not in PREFIX_LENGTHS:
        raise UsageError(
            f"prefix_length {prefix_length} cannot be used: it must be from {PREFIX_LENGTHS[0]} "
            f"(no table) to {PREFIX_LENGTHS[-1]}"
        )
    return IndexParameters(occ_rate, sa_rate, prefix_length)
