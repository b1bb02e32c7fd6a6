"""Prove that an index is the index of its text.

A BWT is correct if LF steps from the row of the last separator spell the whole text backwards and
return: the BWT determines these steps, and the steps determine the BWT. One after the other, the
steps would each wait for memory, so they are cut into pieces that advance together, each from a row
found by searching the text that follows it. The proof is the same, because each piece must end on
the row where the previous one began.

    text      |----- piece 0 ------|----- piece 1 ------|----- piece 2 ------|
                                   ^ row r1             ^ row r2             ^ row 0
              each goes from right to left and must arrive at the row left of it
"""

import numpy as np

from bwarp.errors import InputError
from bwarp.index.bwt_cpu import prefix_table
from bwarp.index.chunks import ChunkedIndex, chunks_of, stretch
from bwarp.index.consistency import counts_add_up, segments_in_order
from bwarp.index.description import OVERLAP
from bwarp.index.fm_index import BWT, FMIndex
from bwarp.index.packed_text_cpu import pack_text
from bwarp.index.rank import base_at, block_start, extend_left, lf_step
from bwarp.index.store import StoredIndex
from bwarp.reference import Reference, codes_of, make_reference, text_of
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.threads import for_each_range

_PIECES = 256
_LONGEST_SEARCH = 1000


def verify_index(index: FMIndex, threads: int = 1) -> None:
    """Check an index against its text; raise `InputError` at the first error."""
    _verify_reference(index.reference, threads)
    text = text_of(index.reference, threads)
    # Check counts before LF steps: with correct counts no step can leave the index.
    for name in ("forward", "reverse") if index.has_reverse else ("forward",):
        if not counts_add_up(getattr(index, name), text.size, threads):
            raise _wrong(f"the counts of its {name} BWT are wrong")
    if index.suffix_array.size != -(-text.size // index.sa_rate):
        raise _wrong("its suffix array has a wrong length")
    _verify_bwt("forward", index.forward, text, index.suffix_array, index.sa_rate, threads)
    if index.has_reverse:
        turned = np.append(text[-2::-1], np.uint8(0))
        empty = np.frombuffer(b"", np.uint32)  # read-only, like the other
        _verify_bwt("reverse", index.reverse, turned, empty, 1, threads)
    table = prefix_table(pack_text(index.reference, threads), index.prefix_length)
    if not np.array_equal(index.prefix_table, table):
        raise _wrong("its prefix table does not match the text")


def verify_stored(index: StoredIndex | ChunkedIndex, threads: int = 1) -> None:
    """Check a stored index, or those of all chunks, and that the chunks are those of the text."""
    if not isinstance(index, ChunkedIndex):
        verify_index(index, threads)
        return
    _verify_reference(index.reference, threads)
    if index.chunks != list(chunks_of(index.reference, index.chunk_bases, OVERLAP)):
        raise _wrong("its chunks do not cover its text")
    for number, chunk in enumerate(index.chunks):
        stored = index.checked(number)
        verify_index(stored, threads)
        expected = stretch(index.reference, chunk.start, chunk.end, threads)
        if not np.array_equal(stored.reference.packed, expected.packed):
            raise _wrong(f"chunk {number + 1} does not have the bases of its genome")


def _wrong(what: str) -> InputError:
    return InputError(f"the index is invalid ({what}): build it again")


def _verify_reference(reference: Reference, threads: int) -> None:
    """Check the segments against their definition, given the ambiguous bases between them."""
    if not segments_in_order(reference):
        raise _wrong("its segments are not in order")
    if reference.packed.size != reference.n_bases // 32 + 2:
        raise _wrong("its genome has a wrong length")
    names, contig_starts = reference.names, reference.contig_starts
    again = make_reference(names, contig_starts, codes_of(reference), reference.md5, threads)
    if not (
        np.array_equal(again.segment_genome, reference.segment_genome)
        and np.array_equal(again.segment_text, reference.segment_text)
        and np.array_equal(again.packed, reference.packed)
    ):
        raise _wrong("its segments do not match its genome")


def _verify_bwt(
    name: str,
    bwt: BWT,
    text: np.ndarray,
    suffixes: np.ndarray,
    sa_rate: int,
    threads: int,
) -> None:
    stops, rows = [text.size - 1], [0]
    for position in range(text.size - text.size // _PIECES - 1, 0, -(text.size // _PIECES + 1)):
        row = _search_row(bwt.arrays, text, position, min(position + _LONGEST_SEARCH, text.size))
        if row >= 0:
            stops.append(position)
            rows.append(row)
    # The first base of the text is preceded by its last separator, whose row is 0.
    starts = np.array([*stops[1:], -1])
    expected = np.array([*rows[1:], 0])
    stops, rows = np.array(stops), np.array(rows)
    wrong = np.full(len(stops), -1, np.int64)

    def spell(first: int, last: int) -> int:
        part = slice(first, last)
        return _spell(
            bwt.arrays, text, suffixes, sa_rate, starts[part], stops[part], rows[part], wrong[part]
        )

    sampled = sum(for_each_range(spell, len(stops), threads, smallest=32))
    if np.any(wrong >= 0):
        at = wrong[np.argmax(wrong >= 0)]
        raise _wrong(f"its {name} BWT or suffix array disagrees with the text at position {at:,}")
    if not np.array_equal(rows, expected):
        raise _wrong(f"its {name} BWT spells more than one text")
    if suffixes.size and sampled != suffixes.size:
        raise _wrong("its suffix array has rows that do not belong to the text")


@compiled
def _search_row(bwt, text, start, stop):
    """Return the row of the suffix at `start`, found by what follows it; -1 if it is not unique.

    The search begins a little later and extends back to `start`; it is repeated with a longer
    stretch while the result is not unique.
    """
    words, separator_rows, groups, first_rows, _ = bwt
    length = 32
    while start + length <= stop:
        low = np.uint64(0)
        high = np.uint64(first_rows[4])
        for i in range(start + length - 1, start - 1, -1):
            if text[i] == 0:
                return -1
            low, high = extend_left(
                words, separator_rows, groups, first_rows, np.int64(text[i]) - 1, low, high
            )
        if high - low == np.uint64(1):
            return np.int64(low)
        length *= 2
    return -1


@compiled
def _spell(bwt, text, suffixes, sa_rate, starts, stops, rows, wrong):
    """Step from every stop to its start, all pieces one step per round; store the last rows.

    Returns the number of sampled rows met; `wrong` gets the position where a piece disagrees.
    """
    words, separator_rows, groups, first_rows, text_start = bwt
    sampled = 0
    longest = np.int64(0)
    for piece in range(starts.size):
        longest = max(longest, stops[piece] - starts[piece])
    for step in range(longest):
        for piece in range(starts.size):
            position = stops[piece] - step
            if position <= starts[piece] or wrong[piece] >= 0:
                continue
            row = rows[piece]
            if suffixes.size and row % sa_rate == 0:
                sampled += 1
                if suffixes[row // sa_rate] != position:
                    wrong[piece] = position
            base = text[position - 1] if position else np.uint8(0)
            code = np.int64(base_at(words, separator_rows, groups, row))
            if (code + 1) % 5 != base:
                wrong[piece] = position
            row = lf_step(words, separator_rows, groups, first_rows, text_start, row)
            rows[piece] = row
            prefetch(words, np.int64(block_start(groups, row)))
    return sampled
