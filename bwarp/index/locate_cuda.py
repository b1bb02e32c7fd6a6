"""Convert rows to text positions, and these to genome positions, on the GPU.

The two steps are those of `bwarp.index.locate_cpu`: `step_to_sampled` maps SA rows to sampled ones,
and `look_up` returns their positions. If memory allows, `whole_suffix_array` does both for all rows
in advance: each row then takes one lookup, and a search can compare its last few rows with the
text.

In every function, `count` is the number of elements in use at the front of an array.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.index.rank_cuda import DeviceBWT, lf_step

_THREADS = 256


class Suffixes(NamedTuple):
    """The text positions of every `rate`-th row, and the length of the text."""

    positions: uint32[::1]
    rate: int
    text_length: int


class Segments(NamedTuple):
    """Where segments start in the text, followed by its end, and where in the genome."""

    text: uint32[::1]
    genome: uint32[::1]


def step_to_sampled(bwt: DeviceBWT, rate: int, rows, steps, count: int) -> None:
    """Replace rows (device, uint32) by sampled ones; write the LF steps to them to `steps`."""
    step_rows[launch(count, _THREADS)](bwt, rate, rows, steps, count)


def look_up(suffixes: Suffixes, rows, steps, count: int) -> None:
    """Replace sampled rows by text positions plus their steps."""
    look_up_rows[launch(count, _THREADS)](suffixes, rows, steps, count)


def whole_suffix_array(bwt: DeviceBWT, sampled: Suffixes) -> Suffixes:
    """Return the text positions of all rows from those of every `rate`-th."""
    positions = cuda.device_array(bwt.n_rows, np.uint32)
    fill_suffixes[launch(bwt.n_rows, _THREADS)](bwt, sampled, positions)
    return Suffixes(positions, 1, bwt.n_rows)


def packed_text(genome, segments: Segments, text_length: int):
    """Return the text in 2 bits per base, like `bwarp.sequence.pack` (device, uint64).

    Separators are stored as A, so comparisons must check where segments end. There are two words
    more than the bases need, so that a window at any position can be read.
    """
    text = cuda.device_array(text_length // 32 + 3, np.uint64)
    pack_text[launch(text.size, _THREADS)](genome, segments, text_length, text)
    return text


@cuda.jit(device=True)
def segment_of(starts, position):
    """Return the number of the segment that contains a text position, by bisection."""
    low = uint32(0)
    high = uint32(starts.size - 1)
    while uint32(high - low) > uint32(1):
        middle = uint32((low + high) >> uint32(1))
        if starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@cuda.jit(device=True)
def genome_position(segments, position):
    """Return the genome position of a text position."""
    segment = segment_of(segments.text, position)
    return uint32(segments.genome[segment] + position - segments.text[segment])


@cuda.jit(device=True)
def position_of(suffixes, row, steps):
    """Return the text position `steps` after that of a sampled row, wrapping at the end of the
    text.

    If a forged suffix array leads outside the text, return the start of the text.
    """
    position = uint64(suffixes.positions[uint32(row // uint32(suffixes.rate))]) + uint64(steps)
    if position >= uint64(suffixes.text_length):
        position -= uint64(suffixes.text_length)
        if position >= uint64(suffixes.text_length):
            position = uint64(0)
    return uint32(position)


@kernel
def step_rows(bwt: DeviceBWT, rate: int, rows: uint32[::1], steps: uint32[::1], count: int):
    """Step from rows to sampled rows. One thread per row; about `rate` random reads."""
    i = cuda.grid(1)
    if i < count:
        row = first_row = rows[i]
        taken = uint32(0)
        while row % uint32(rate) != 0:
            row = lf_step(bwt, row)
            taken = uint32(taken + uint32(1))
            if row == first_row:  # only in a forged index: it would never end
                break
        rows[i] = row
        steps[i] = taken


@kernel
def look_up_rows(suffixes: Suffixes, rows: uint32[::1], steps: uint32[::1], count: int):
    """Look up positions. One thread per row; one random read."""
    i = cuda.grid(1)
    if i < count:
        rows[i] = position_of(suffixes, rows[i], steps[i])


@kernel
def fill_suffixes(bwt: DeviceBWT, sampled: Suffixes, positions: uint32[::1]):
    """Do both steps. One thread per row; about `rate` random reads."""
    i = cuda.grid(1)
    if i < positions.size:
        row = first_row = uint32(i)
        taken = uint32(0)
        while row % uint32(sampled.rate) != 0:
            row = lf_step(bwt, row)
            taken = uint32(taken + uint32(1))
            if row == first_row:
                break
        positions[i] = position_of(sampled, row, taken)


@kernel
def pack_text(genome: uint64[::1], segments: Segments, text_length: int, text: uint64[::1]):
    """Pack text. One thread per 32 bases; neighbours read neighbouring words of the genome."""
    i = cuda.grid(1)
    if i < text.size:
        bits = uint64(0)
        position = 32 * i
        if position < text_length:
            segment = segment_of(segments.text, position)
            for shift in range(62, -2, -2):
                if position < text_length:
                    if position >= segments.text[segment + uint32(1)]:
                        segment = uint32(segment + uint32(1))
                    if position + 1 < segments.text[segment + uint32(1)]:
                        base = uint32(segments.genome[segment] + position - segments.text[segment])
                        word = genome[base >> uint32(5)]
                        code = word >> uint64(62 - 2 * (base & uint32(31)))
                        bits |= (code & uint64(3)) << uint64(shift)
                position += 1
        text[i] = bits
