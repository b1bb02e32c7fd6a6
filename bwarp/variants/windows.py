"""Alternative sequences around edits, as haplotypes have them.

A window belongs to its first edit, the anchor. Left of the anchor it has bases of the reference;
right of it, the edits that a haplotype with the anchor carries, as far as a site can reach:

    reference  ...ACGTTGCAAG C TTAGC--ATG...      anchor C>T, then an insertion of GG
    window        ACGTTGCAAG T TTAGCGGATG
                  |-reach-1| |  |-reach-1-|

Every site whose first edit is the anchor is in such a window. Haplotypes with the same edits to the
right share a window, so there are as many windows as there are observed sequences. A haplotype may
have another edit on the left: `bwarp.offtargets.alternative_sites` compares the edits under each
site with those of the haplotypes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.sequence import pack
from bwarp.variants.edits import MOST_EDITS, Edits
from bwarp.variants.lines import Bases

#: Windows of a part, unless those of a single anchor are more.
_WINDOWS_AT_ONCE = 1 << 18

_NONE = np.uint64(0)


class Windows(NamedTuple):
    """Windows in the order of their anchors.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The bases of all windows.
    begins : ndarray, shape=(n + 1,), dtype=int64
        Where each window begins in `codes`.
    origins : ndarray, shape=(n,), dtype=int64
        The position of the first base of each window in the genome.
    firsts : ndarray, shape=(n + 1,), dtype=int64
        The first entry of each window in the arrays below, which have one entry per edit.
    edits : ndarray, dtype=int64
    offsets : ndarray, dtype=int64
        Where the bases of the edit begin in the window.
    limited : ndarray, dtype=int64
        Anchors with more combinations than allowed, and the edits per window that are left.
    """

    codes: np.ndarray
    begins: np.ndarray
    origins: np.ndarray
    firsts: np.ndarray
    edits: np.ndarray
    offsets: np.ndarray
    limited: np.ndarray

    @property
    def count(self) -> int:
        return len(self.origins)


class _Room(NamedTuple):
    """Arrays to write windows to; `used` counts codes, windows, entries and limited."""

    codes: np.ndarray
    begins: np.ndarray
    origins: np.ndarray
    firsts: np.ndarray
    edits: np.ndarray
    offsets: np.ndarray
    limited: np.ndarray
    used: np.ndarray


class _Stack(NamedTuple):
    """States of the depth-first search: haplotypes, next edit, edits so far, bases to the right."""

    carriers: np.ndarray
    following: np.ndarray
    counts: np.ndarray
    lengths: np.ndarray
    paths: np.ndarray


class Limits(NamedTuple):
    """Limits of windows: bases of a site, windows per anchor with free edits, and the contig."""

    reach: int
    combinations: int
    begin: int
    end: int


def list_windows(
    edits: Edits, genome: Bases, limits: Limits, first: int, last: int
) -> Iterator[Windows]:
    """Yield the windows of the anchors from `first` up to `last`, in at least one part."""
    n_words = edits.carriers.shape[1]
    # The states on the stack have different numbers of edits.
    deepest = MOST_EDITS + 2
    stack = _Stack(
        np.empty((deepest, n_words), np.uint64), np.empty(deepest, np.int64),
        np.empty(deepest, np.int64), np.empty(deepest, np.int64),
        np.empty((deepest, MOST_EDITS), np.int64),
    )  # fmt: skip
    anchor, size = first, _WINDOWS_AT_ONCE
    while True:
        room = _Room(
            np.empty(64 * size, np.uint8), np.empty(size + 1, np.int64), np.empty(size, np.int64),
            np.empty(size + 1, np.int64), np.empty(8 * size, np.int64),
            np.empty(8 * size, np.int64), np.empty((size, 2), np.int64), np.zeros(4, np.int64),
        )  # fmt: skip
        after = _fill(edits, genome, limits, (anchor, last), stack, room)
        if after > anchor or anchor >= last:
            yield _part(room)
        else:
            # The windows of an anchor do not fit: there are very many combinations.
            size *= 4
        anchor = after
        if anchor >= last:
            return


def alternative_genome(windows: Windows) -> Reference:
    """Return a reference whose contigs, one segment each, are the windows."""
    lengths = np.diff(windows.begins)
    packed = pack(windows.codes)
    packed.setflags(write=False)
    return Reference(
        names=(),
        contig_starts=windows.begins,
        md5=(),
        segment_genome=windows.begins[:-1].astype(np.uint32),
        segment_text=np.append(0, np.cumsum(lengths + 1)),
        packed=packed,
    )


def _part(room: _Room) -> Windows:
    n_codes, n_windows, n_entries, n_limited = room.used.tolist()
    return Windows(
        room.codes[:n_codes], np.append(room.begins[:n_windows], n_codes),
        room.origins[:n_windows], np.append(room.firsts[:n_windows], n_entries),
        room.edits[:n_entries], room.offsets[:n_entries],
        room.limited[:n_limited],
    )  # fmt: skip


@compiled
def _fill(edits, genome, limits, anchors, stack, room):
    """Write the windows of a range of anchors as far as they fit; return the next anchor."""
    used = room.used
    anchor, last = anchors
    while anchor < last:
        before = used.copy()
        count, any_free = _windows_of(edits, genome, limits, anchor, MOST_EDITS, stack, room)
        if count >= 0 and any_free and count > limits.combinations:
            # Fewer edits at a time, as many as the limit allows.
            most = 1
            while most < MOST_EDITS - 1:
                used[:] = before
                count, _ = _windows_of(edits, genome, limits, anchor, most + 1, stack, room)
                if count < 0 or count > limits.combinations:
                    break
                most += 1
            used[:] = before
            count, _ = _windows_of(edits, genome, limits, anchor, most, stack, room)
            if count >= 0 and used[3] < len(room.limited):
                room.limited[used[3], 0] = anchor
                room.limited[used[3], 1] = most
                used[3] += 1
        if count < 0:
            used[:] = before
            break
        anchor += 1
    return anchor


@compiled
def _windows_of(edits, genome, limits, anchor, most_edits, stack, room):
    """Write the windows of an anchor with up to `most_edits` edits, or one more than allowed.

    Returns
    -------
    count : int
        Windows; -1 if there is not enough room.
    any_free : bool
        Whether free edits were combined.
    """
    starts, stops = edits.starts, edits.stops
    n_words = stack.carriers.shape[1]
    any_free = False
    count = 0
    stop = _right_end(genome, limits, stops[anchor])
    held = np.uint64(0)
    for word in range(n_words):
        bits = edits.carriers[anchor, word]
        if edits.free[anchor]:
            bits = ~np.uint64(0)
        stack.carriers[0, word] = bits
        held |= bits
    if held == _NONE:
        return 0, False
    stack.following[0], stack.counts[0], stack.lengths[0] = anchor + 1, 1, 0
    stack.paths[0, 0] = anchor
    depth = 0
    while depth >= 0:
        # The state at `depth` is completed, while states for other haplotypes go below it.
        n_edits = stack.counts[depth]
        last = stack.paths[depth, n_edits - 1]
        other = stack.following[depth]
        if (
            other >= starts.size
            or starts[other] > stop
            or stack.lengths[depth] + starts[other] - stops[last] >= limits.reach - 1
        ):
            count += 1
            if not _emit(edits, genome, limits, stop, stack, depth, room):
                return -1, any_free
            if any_free and count > limits.combinations:
                return count, True
            depth -= 1
            continue
        stack.following[depth] = other + 1
        if not _may_follow(edits, stack, depth, other):
            continue
        free = edits.free[other]
        any_free = any_free or free
        with_it, without = free, free
        if not free:
            for word in range(n_words):
                bits = stack.carriers[depth, word]
                with_it = with_it or bits & edits.carriers[other, word] != _NONE
                without = without or bits & ~edits.carriers[other, word] != _NONE
        if not with_it:
            continue
        if n_edits >= most_edits:
            if most_edits == MOST_EDITS:
                return limits.combinations + 1, True
            if not free:
                # Only the haplotypes without it are left.
                if not without:
                    depth -= 1
                    continue
                for word in range(n_words):
                    stack.carriers[depth, word] &= ~edits.carriers[other, word]
            continue
        if without:
            _copy_state(stack, depth)
            for word in range(n_words):
                if not free:
                    stack.carriers[depth, word] &= ~edits.carriers[other, word]
            depth += 1
        if not free:
            for word in range(n_words):
                stack.carriers[depth, word] &= edits.carriers[other, word]
        stack.lengths[depth] += (
            starts[other] - stops[last] + edits.bounds[other, 1] - edits.bounds[other, 0]
        )
        stack.paths[depth, n_edits] = other
        stack.counts[depth] = n_edits + 1
    return count, any_free


@compiled
def _copy_state(stack, depth):
    stack.carriers[depth + 1] = stack.carriers[depth]
    stack.following[depth + 1] = stack.following[depth]
    stack.counts[depth + 1] = stack.counts[depth]
    stack.lengths[depth + 1] = stack.lengths[depth]
    for i in range(stack.counts[depth]):
        stack.paths[depth + 1, i] = stack.paths[depth, i]


@compiled
def _may_follow(edits, stack, depth, other):
    """Return whether an edit can be applied after those of a state."""
    last = stack.paths[depth, stack.counts[depth] - 1]
    starts, stops = edits.starts, edits.stops
    if starts[other] < stops[last]:
        return False
    if starts[other] == stops[other] and starts[last] == stops[last] == starts[other]:
        return False
    if edits.free[other]:
        for i in range(stack.counts[depth]):
            if edits.records[stack.paths[depth, i]] == edits.records[other]:
                return False
    return True


@compiled
def _right_end(genome, limits, at):
    """Return where the bases that follow a position end: at an ambiguous one, or the contig's."""
    segment = interval_at(genome.segment_starts, at)
    if at >= limits.end or segment < 0:
        return at
    return max(min(genome.segment_stops[segment], limits.end), at)


@compiled
def _left_end(genome, limits, at):
    """Return where the bases that precede a position begin."""
    segment = interval_at(genome.segment_starts, at - 1)
    if at <= limits.begin or segment < 0 or genome.segment_stops[segment] < at:
        return at
    return max(genome.segment_starts[segment], limits.begin)


@compiled
def _emit(edits, genome, limits, stop, stack, depth, room):
    """Write the window of a state; return whether it fitted."""
    used = room.used
    n_edits = stack.counts[depth]
    anchor = stack.paths[depth, 0]
    start = edits.starts[anchor]
    origin = max(start - (limits.reach - 1), _left_end(genome, limits, start))
    most = start - origin + 64 * (n_edits + 1) + limits.reach + stack.lengths[depth]
    if (
        used[0] + most > room.codes.size
        or used[1] >= room.origins.size
        or used[2] + n_edits > room.edits.size
    ):
        return False
    begin = used[0]
    room.begins[used[1]] = begin
    room.origins[used[1]] = origin
    room.firsts[used[1]] = used[2]
    at = _put_bases(genome.packed, origin, start, room.codes, begin)
    right = 0
    for i in range(n_edits):
        edit = stack.paths[depth, i]
        if i:
            at = _put_bases(
                genome.packed, edits.stops[stack.paths[depth, i - 1]], edits.starts[edit],
                room.codes, at,
            )  # fmt: skip
        room.edits[used[2]] = edit
        room.offsets[used[2]] = at - begin
        used[2] += 1
        for base in range(edits.bounds[edit, 0], edits.bounds[edit, 1]):
            room.codes[at] = edits.bases[base]
            at += 1
        if i == 0:
            right = at
    last = edits.stops[stack.paths[depth, n_edits - 1]]
    end = min(stop, last + max(limits.reach - 1 - (at - right), 0))
    used[0] = _put_bases(genome.packed, last, end, room.codes, at)
    used[1] += 1
    return True


@compiled
def _put_bases(packed, start, stop, codes, at):
    for position in range(start, stop):
        word = packed[position >> 5]
        codes[at] = word >> np.uint64(62 - 2 * (position & 31)) & np.uint64(3)
        at += 1
    return at
