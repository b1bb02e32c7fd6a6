"""Rules for the parts of a record that all encoders share; each engine compiles its own copy.

Functions that write take a byte array and the offset to write at, and return the offset after the
last byte. NM counts mismatched, inserted and deleted bases. MD lists the reference bases at
mismatches and deletions, and the number of matching bases between them. Ambiguous bases count as
mismatches.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numpy import int64, uint64

from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MATCH
from bwarp.bam.fields import (
    FIRST,
    INT8,
    INT16,
    INT32,
    INTEGER,
    LAST,
    MATE_REVERSE,
    MATE_UNMAPPED,
    PAIRED,
    PROPER,
    UINT8,
    UINT16,
    UINT32,
)
from bwarp.bam.records import first_bin
from bwarp.runtime.compiled_code import compiled
from bwarp.sequence import AMBIGUOUS

#: The letters of base codes and of CIGAR operations, 8 bits each, the first in the lowest bits.
_BASES = int.from_bytes(b"ACGTN", "little")
_OPERATIONS = int.from_bytes(b"MIDNSHP=", "little")
_X, _CARET, _TAB, _COLON = b"X^\t:"


@compiled(inline="always")
def is_match(operation):
    """Return whether an operation aligns bases to bases: M, = or X."""
    return operation == MATCH or operation >= EQUAL


@compiled(inline="always")
def nibble(code):
    """Return a base in 4 bits: one bit for each of A, C, G and T, and all bits for N."""
    return min(np.uint8(1) << code, np.uint8(15))


@compiled(inline="always")
def record_bin(position, span):
    """Return the BAI bin of a record, which spans at least one base."""
    return first_bin(position, position + max(span, np.int64(1)), 14, 5)


@compiled(inline="always")
def pair_flags(is_last, is_proper, mate_position, mate_reverse):
    """Return the flags of a read of a pair: which read it is, and the state of its mate."""
    flag = PAIRED | (LAST if is_last else FIRST)
    flag |= PROPER if is_proper else 0
    if mate_position < 0:
        flag |= MATE_UNMAPPED
    elif mate_reverse:
        flag |= MATE_REVERSE
    return flag


@compiled(inline="always")
def template_length(position, reverse, span, mate_position, mate_reverse, mate_span):
    """Return TLEN: the bases between the 5' ends of two mates, negative for a mate to the left."""
    length = mate_position - position
    length += (mate_span - 1) if mate_reverse else 0
    length -= (span - 1) if reverse else 0
    if length != 0:
        length += 1 if length > 0 else -1
    return length


class AlignedRead(NamedTuple):
    """An alignment from which NM and MD are derived.

    Attributes
    ----------
    genome : array
        Blocks of bases.
    position : int
        Position of the first aligned base in the genome.
    both : array
        Bases of reads and of their reverse complements.
    base : int
        Offset in `both` of the first base of the CIGAR, which may be clipped.
    cigar : array
    first, last : int
        The range of the alignment's operations in `cigar`.
    """

    genome: object
    position: int
    both: object
    base: int
    cigar: object
    first: int
    last: int


class PafCounts(NamedTuple):
    """Counts of an alignment: matches, columns without ambiguous bases, ambiguous bases, gaps, and
    bases in gaps."""

    same: int
    columns: int
    ambiguous: int
    gaps: int
    gap_bases: int


class EngineFunctions(NamedTuple):
    """Functions of an engine from which `part_functions` makes others.

    Attributes
    ----------
    jit : decorator
        Compiles a function that compiled code calls.
    put_byte, put_int16, put_int32 : function of out, at, number
    put_number : function of out, at, number
        Writes decimal digits, after a minus sign if the number is negative.
    differing : function of genome, position, both, base, n
        Mark bases, at most `step`, of the genome and a read that differ or are ambiguous, as bits
        of a uint64, the first in the lowest bit.
    base_at : function of genome, position
        Return the code of a base.
    code_at : function of both, position
        Return the code of a base of a read.
    count_bits : function of uint64
    step : int
        Maximum number of bases that `differing` compares.
    """

    jit: Callable
    put_byte: Callable
    put_int16: Callable
    put_int32: Callable
    put_number: Callable
    differing: Callable
    base_at: Callable
    code_at: Callable
    count_bits: Callable
    step: int


def part_functions(engine: EngineFunctions) -> SimpleNamespace:
    """Return the functions of one engine, by name."""
    (
        jit, put_byte, put_int16, put_int32, put_number, differing, base_at, code_at, count_bits,
        step,
    ) = engine  # fmt: skip

    @jit
    def put_tag(out, at, tag, kind):
        """Write the name of a BAM tag (see `bwarp.bam.fields`) and its kind."""
        return put_byte(out, put_int16(out, at, tag), kind)

    @jit
    def put_integer_tag(out, at, tag, number):
        """Write a tag with an integer in the fewest bytes that hold it, as samtools does."""
        if number >= 0:
            if number < 1 << 8:
                return put_byte(out, put_tag(out, at, tag, UINT8), number)
            if number < 1 << 16:
                return put_int16(out, put_tag(out, at, tag, UINT16), number)
            return put_int32(out, put_tag(out, at, tag, UINT32), number)
        if number >= -(1 << 7):
            return put_byte(out, put_tag(out, at, tag, INT8), number)
        if number >= -(1 << 15):
            return put_int16(out, put_tag(out, at, tag, INT16), number)
        return put_int32(out, put_tag(out, at, tag, INT32), number)

    @jit
    def begin_tag(out, at, tag, kind, is_binary):
        """Write the name and kind of a tag: NM C in BAM, NM:i: after a tab in SAM."""
        if is_binary:
            return put_tag(out, at, tag, kind)
        at = put_byte(out, put_int16(out, put_byte(out, at, _TAB), tag), _COLON)
        return put_byte(out, put_byte(out, at, kind), _COLON)

    @jit
    def end_text(out, at, is_binary):
        return put_byte(out, at, 0) if is_binary else at

    @jit
    def put_integer(out, at, tag, number, is_binary):
        """Write a tag with a number."""
        if is_binary:
            return put_integer_tag(out, at, tag, number)
        return put_number(out, begin_tag(out, at, tag, INTEGER, False), number)

    @jit
    def put_operation(out, at, length, operation):
        """Write a CIGAR operation as text."""
        letter = _X if operation > EQUAL else _OPERATIONS >> 8 * int64(operation) & 255
        return put_byte(out, put_number(out, at, length), letter)

    @jit
    def put_cigar(out, at, cigar, first, last):
        for i in range(first, last):
            at = put_operation(out, at, int64(cigar[i]) >> 4, int64(cigar[i]) & 15)
        return at

    @jit
    def put_letter(out, at, code):
        """Write a base: A, C, G, T or N."""
        return put_byte(out, at, _BASES >> 8 * int64(code) & 255)

    @jit
    def put_base(out, at, genome, position):
        """Write a base of the genome."""
        return put_letter(out, at, base_at(genome, position))

    @jit
    def count_edits(aligned):
        """Return NM of an `AlignedRead`."""
        genome, position, both, base, cigar, first, last = aligned
        edits = int64(0)
        for i in range(first, last):
            length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
            if is_match(operation):
                for at in range(0, length, step):
                    n = min(int64(step), length - at)
                    bits = differing(genome, position + at, both, base + at, n)
                    edits += int64(count_bits(bits))
                base += length
                position += length
            elif operation == DELETION:
                edits += length
                position += length
            else:
                edits += length if operation == INSERTION else 0
                base += length
        return edits

    @jit
    def put_md(out, at, aligned):
        """Write MD of an `AlignedRead`."""
        genome, position, both, base, cigar, first, last = aligned
        same = int64(0)
        for i in range(first, last):
            length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
            if is_match(operation):
                done = int64(0)
                for begin in range(0, length, step):
                    n = min(int64(step), length - begin)
                    bits = differing(genome, position + begin, both, base + begin, n)
                    while bits:
                        found = begin + int64(count_bits(~bits & (bits - uint64(1))))
                        bits &= bits - uint64(1)
                        at = put_number(out, at, same + found - done)
                        at = put_base(out, at, genome, position + found)
                        same, done = int64(0), found + 1
                same += length - done
                base += length
                position += length
            elif operation == DELETION:
                at = put_byte(out, put_number(out, at, same), _CARET)
                for j in range(length):
                    at = put_base(out, at, genome, position + j)
                same = int64(0)
                position += length
            else:
                base += length
        return put_number(out, at, same)

    @jit
    def put_share(out, at, part, whole):
        """Write part / whole with four digits, rounded half up; 0 and 1 without digits."""
        if part == 0 or part == whole:
            return put_byte(out, at, 49 if part > 0 else 48)
        digits = (2 * 10_000 * part + whole) // (2 * whole)
        at = put_byte(out, put_byte(out, at, 48 + digits // 10_000), 46)
        for power in (1000, 100, 10, 1):
            at = put_byte(out, at, 48 + digits // power % 10)
        return at

    @jit
    def paf_counts(aligned):
        """Return the `PafCounts` of an `AlignedRead`."""
        genome, position, both, base, cigar, first, last = aligned
        same = columns = ambiguous = gaps = gap_bases = int64(0)
        for i in range(first, last):
            length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
            is_insertion = operation == INSERTION
            if is_match(operation):
                for begin in range(0, length, step):
                    n = min(int64(step), length - begin)
                    bits = differing(genome, position + begin, both, base + begin, n)
                    same += n - int64(count_bits(bits))
                    columns += n
                    while bits:
                        found = begin + int64(count_bits(~bits & (bits - uint64(1))))
                        bits &= bits - uint64(1)
                        if (
                            code_at(both, base + found) == AMBIGUOUS
                            or base_at(genome, position + found) == AMBIGUOUS
                        ):
                            columns -= 1
                            ambiguous += 1
                base += length
                position += length
            elif is_insertion or operation == DELETION:
                gaps += 1
                gap_bases += length
                columns += length
                for j in range(length):
                    if is_insertion:
                        code = int64(code_at(both, base + j))
                    else:
                        code = int64(base_at(genome, position + j))
                    columns -= 1 if code == AMBIGUOUS else 0
                    ambiguous += 1 if code == AMBIGUOUS else 0
                base += length if is_insertion else 0
                position += 0 if is_insertion else length
            else:
                base += length
        return PafCounts(same, columns, ambiguous, gaps, gap_bases)

    @jit
    def _put_item(out, at, item):
        if at < out.size:
            out[at] = item
        return at + 1

    @jit
    def split_matches(out, at, aligned):
        """Write the CIGAR of an `AlignedRead` with = and X instead of M, to an array of operations.

        If the array is empty, nothing is written.
        """
        genome, position, both, base, cigar, first, last = aligned
        for i in range(first, last):
            length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
            if not is_match(operation):
                at = _put_item(out, at, cigar[i])
                # Clips, soft or hard, are bases of the read here.
                base += 0 if operation == DELETION else length
                position += length if operation == DELETION else 0
                continue
            kind, run = int64(-1), int64(0)
            for begin in range(0, length, step):
                n = min(int64(step), length - begin)
                bits = uint64(differing(genome, position + begin, both, base + begin, n))
                done = int64(0)
                while done < n:
                    differs = int64(bits & uint64(1))
                    # The run of equal bases: the zeros, or ones, at the lower end.
                    others = uint64(~bits) if differs else bits
                    here = int64(count_bits(~others & (others - uint64(1))))
                    here = min(here, n - done)
                    if differs == kind:
                        run += here
                    else:
                        if run > 0:
                            at = _put_item(out, at, run << 4 | (EQUAL + kind))
                        kind, run = differs, here
                    done += here
                    bits = bits >> uint64(here) if here < 64 else uint64(0)
            if run > 0:
                at = _put_item(out, at, run << 4 | (EQUAL + kind))
            base += length
            position += length
        return at

    return SimpleNamespace(**locals())
