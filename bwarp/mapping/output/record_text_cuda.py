"""Parts of BAM records on the GPU: numbers, CIGARs, MD and tags, as record_text writes them.

The functions write into a byte array and return where they stopped. Into an empty array they write
nothing, and so tell how long a part is.
"""

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH
from bwarp.gpu.cuda import cuda, int64, uint32, uint64
from bwarp.gpu.launch import WARP
from bwarp.gpu.ptx import load_uint32x4
from bwarp.mapping.reads.base_bits_cuda import differing

__all__ = [
    "begin_tag",
    "count_edits",
    "put_byte",
    "put_bytes",
    "put_cigar",
    "put_int16",
    "put_int32",
    "put_integer",
    "put_md",
    "put_number",
    "reference_span",
]

_CARET = 94


@cuda.jit(device=True)
def put_byte(out, at, byte):
    if at < out.size:
        out[at] = byte & 255
    return at + 1


@cuda.jit(device=True)
def put_bytes(out, at, source, start, stop):
    """Copy ``source[start:stop]``."""
    for i in range(start, stop):
        put_byte(out, at + i - start, source[i])
    return at + stop - start


@cuda.jit(device=True)
def put_int16(out, at, number):
    return put_byte(out, put_byte(out, at, number), number >> 8)


@cuda.jit(device=True)
def put_int32(out, at, number):
    return put_int16(out, put_int16(out, at, number), number >> 16)


@cuda.jit(device=True)
def put_number(out, at, number):
    """Write a number that is not negative, and has up to nine digits or ten, in decimal."""
    digits, power = int64(1), uint64(10)
    rest = uint64(number)
    while rest >= power:
        digits += 1
        power *= uint64(10)
    for i in range(digits):
        put_byte(out, at + digits - 1 - i, int64(48) + int64(rest % uint64(10)))
        rest //= uint64(10)
    return at + digits


@cuda.jit(device=True)
def begin_tag(out, at, first, second, kind):
    return put_byte(out, put_byte(out, put_byte(out, at, first), second), kind)


@cuda.jit(device=True)
def put_integer(out, at, first, second, number):
    """A tag with a number in as few bytes as hold it, as samtools chooses them."""
    if number >= 0:
        if number < 1 << 8:
            return put_byte(out, begin_tag(out, at, first, second, 67), number)
        if number < 1 << 16:
            return put_int16(out, begin_tag(out, at, first, second, 83), number)
        return put_int32(out, begin_tag(out, at, first, second, 73), number)
    if number >= -(1 << 7):
        return put_byte(out, begin_tag(out, at, first, second, 99), number)
    if number >= -(1 << 15):
        return put_int16(out, begin_tag(out, at, first, second, 115), number)
    return put_int32(out, begin_tag(out, at, first, second, 105), number)


@cuda.jit(device=True)
def put_cigar(out, at, cigar, first, last, clip_before, clip_after):
    """A CIGAR of M, I and D as text, with soft clips around it."""
    if clip_before > 0:
        at = put_byte(out, put_number(out, at, clip_before), 83)
    for i in range(first, last):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        letter = 77 if operation == MATCH else 73 if operation == INSERTION else 68
        at = put_byte(out, put_number(out, at, length), letter)
    if clip_after > 0:
        at = put_byte(out, put_number(out, at, clip_after), 83)
    return at


@cuda.jit(device=True)
def reference_span(cigar, first, last):
    """Reference bases that the operations of a CIGAR from `first` to `last` align."""
    span = int64(0)
    for i in range(first, last):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        if operation != INSERTION:
            span += length
    return span


@cuda.jit(device=True)
def _differing(genome, position, both, base, n):
    """Which of the next bases, 32 or n if that is less, differ; the first is the lowest bit."""
    bits = int64(differing(genome, position, both, base))
    if n < WARP:
        bits &= (int64(1) << n) - 1
    return bits


@cuda.jit(device=True)
def count_edits(genome, position, both, base, cigar, first, last):
    """Mismatched, inserted and deleted bases: NM.

    `base` is where the first aligned base is in `both`, the blocks of the reads.
    """
    edits = int64(0)
    for i in range(first, last):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        if operation == MATCH:
            for at in range(0, length, WARP):
                bits = _differing(genome, position + at, both, base + at, length - at)
                edits += int64(cuda.popc(bits))
            base += length
            position += length
        else:
            edits += length
            if operation == DELETION:
                position += length
            else:
                base += length
    return edits


@cuda.jit(device=True)
def _put_base(out, at, genome, position):
    """A base of the genome: A, C, G, T or N."""
    low, high, ambiguous, _ = load_uint32x4(genome, uint64(4) * (uint64(position) >> uint64(5)))
    bit = uint32(position) & uint32(31)
    letter = int64(65)
    if (ambiguous >> bit) & uint32(1):
        letter = int64(78)
    elif (high >> bit) & uint32(1):
        letter = int64(84) if (low >> bit) & uint32(1) else int64(71)
    elif (low >> bit) & uint32(1):
        letter = int64(67)
    return put_byte(out, at, letter)


@cuda.jit(device=True)
def put_md(out, at, genome, position, both, base, cigar, first, last):
    """MD: the reference's bases at mismatches and deletions, with how many agree between them.

    Parameters as of `count_edits`.
    """
    same = int64(0)
    for i in range(first, last):
        length, operation = int64(cigar[i]) >> 4, int64(cigar[i]) & 15
        if operation == MATCH:
            done = int64(0)
            for step in range(0, length, WARP):
                bits = _differing(genome, position + step, both, base + step, length - step)
                while bits != 0:
                    found = step + int64(cuda.ffs(bits)) - 1
                    bits &= bits - 1
                    at = put_number(out, at, same + found - done)
                    at = _put_base(out, at, genome, position + found)
                    same, done = int64(0), found + 1
            same += length - done
            base += length
            position += length
        elif operation == DELETION:
            at = put_byte(out, put_number(out, at, same), _CARET)
            for j in range(length):
                at = _put_base(out, at, genome, position + j)
            same = int64(0)
            position += length
        else:
            base += length
    return put_number(out, at, same)
