"""Similarity thresholds as exact fractions, so that no hit at the very boundary is ever in doubt.

A window of the query's length has the distance D = sum |query count - window count| over the four
bases, a whole number, and the similarity S = 1 - D / length. With a threshold of n / d,

    S >= n / d   <=>   D <= length * (d - n) / d   <=>   D <= floor(length * (d - n) / d)

so one whole number a length, its largest distance, says all.
"""

from fractions import Fraction

from bwarp.errors import UsageError

__all__ = ["format_similarity", "largest_distance", "parse_similarity"]

_DIGITS = 6


def parse_similarity(text: str) -> Fraction:
    """A threshold typed as a decimal or a fraction (``0.95``, ``19/20``), above 0 and at most 1.

    >>> parse_similarity("0.95")
    Fraction(19, 20)
    """
    try:
        similarity = Fraction(text)
    except (ValueError, ZeroDivisionError):
        similarity = None
    if similarity is None or not 0 < similarity <= 1:
        raise UsageError(
            f"similarity {text!r} is not a number above 0 and at most 1, such as 0.95 or 19/20"
        )
    return similarity


def largest_distance(similarity: Fraction, length: int) -> int:
    """The largest distance a window of `length` bases may have and still be a hit.

    >>> largest_distance(Fraction("0.95"), 40)
    2
    """
    return length * (similarity.denominator - similarity.numerator) // similarity.denominator


def format_similarity(distance: int, length: int) -> str:
    """The similarity of a distance, six decimals, cut off (not rounded).

    >>> format_similarity(1, 3)
    '0.666666'
    """
    digits = (length - distance) * 10**_DIGITS // length
    return f"{digits // 10**_DIGITS}.{digits % 10**_DIGITS:0{_DIGITS}d}"
