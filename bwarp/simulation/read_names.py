"""The truth about a read in its name, and back.

    NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS             a single read
    NUMBER:CONTIG:START:STOP:STRAND:VARIANTS:ERRORS:START:STOP:STRAND:VARIANTS:ERRORS     a pair
    NUMBER:*                                                    random sequence

    17:chr20:1042:1192:+:1:0:1390:1540:-:0:2

Both reads of a pair have the same name; first the truth of read 1, then that of read 2. NUMBER
counts reads or pairs from 0. START and STOP are 0-based and half-open within the contig and on its
forward strand, whatever STRAND (+ or -) the read is of. VARIANTS is the number of bases by which
the read's span of its haplotype differs from the reference, ERRORS that of sequencing errors; a
base inserted or left out counts one, so the two together are at least the edit distance. CONTIG is
percent-encoded but for letters, digits and ``_ . - ~``.
"""

from dataclasses import dataclass
from urllib.parse import quote, unquote

import numpy as np

from bwarp.errors import InputError

__all__ = ["EndTruth", "ReadTruth", "encode_contig_names", "parse_read_name"]

#: The longest name a SAM record may have.
LONGEST_NAME = 254
#: What a pair's name needs besides the contig, with every number at its longest.
_BESIDES_CONTIG = len("1099511627776:" + 2 * ":4294967296:4294967296:+:99999:99999")


@dataclass(frozen=True)
class EndTruth:
    """The origin of one read of a pair, or of a single read."""

    start: int
    stop: int
    reverse: bool
    variants: int
    errors: int


@dataclass(frozen=True)
class ReadTruth:
    """The truth in a simulated read's name.

    Attributes
    ----------
    number : int
        Number of the read or pair, from 0.
    contig : str or None
        None for random sequence.
    ends : tuple of EndTruth
        One for a single read, two for a pair, none for random sequence.
    """

    number: int
    contig: str | None
    ends: tuple[EndTruth, ...]


def parse_read_name(name: str) -> ReadTruth:
    """The truth in a simulated read's name.

    >>> parse_read_name("17:HLA%3A1:40:190:-:1:0")
    ReadTruth(number=17, contig='HLA:1', ends=(EndTruth(start=40, stop=190, reverse=True, \
variants=1, errors=0),))
    """
    number, _, rest = name.partition(":")
    contig, *fields = rest.split(":")
    try:
        if rest == "*":
            return ReadTruth(int(number), None, ())
        if not contig or len(fields) not in (5, 10):
            raise ValueError
        ends = tuple(_end_truth(fields[at : at + 5]) for at in range(0, len(fields), 5))
        return ReadTruth(int(number), unquote(contig, errors="strict"), ends)
    except ValueError:
        raise InputError(
            f"read name {name!r} does not hold the truth: "
            "only reads that simulate_reads.py made can be scored"
        ) from None


def _end_truth(fields: list[str]) -> EndTruth:
    start, stop, strand, variants, errors = fields
    if strand not in ("+", "-"):
        raise ValueError
    return EndTruth(int(start), int(stop), strand == "-", int(variants), int(errors))


def encode_contig_names(names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Percent-encoded contig names, end to end (uint8), and their offsets (int64).

    Raises
    ------
    InputError
        If a name is too long for the read names that hold it.
    """
    encoded = [quote(name, safe="").encode() for name in names]
    for name, text in zip(names, encoded, strict=True):
        if _BESIDES_CONTIG + len(text) > LONGEST_NAME:
            raise InputError(
                f"contig {name[:40]!r}... has a name of {len(text)} characters when "
                f"percent-encoded: at most {LONGEST_NAME - _BESIDES_CONTIG} fit into a read's name"
            )
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in encoded])])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets.astype(np.int64)
