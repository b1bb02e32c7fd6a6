"""Convert rows to text positions, and these to genome positions, on the GPU.

The two steps are those of `bwarp.index.locate_cpu`: `step_to_sampled` maps SA rows to sampled ones,
and `look_up` returns their positions. If memory allows, `whole_suffix_array` does both for all rows
in advance: each row then takes one lookup, and a search can compare its last few rows with the
text.

In every function, `count` is the number of elements in use at the front of an array.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.index.rank_cuda import GROUPS, lf_step

_THREADS = 256


def step_to_sampled(bwt, first_rows, rate: int, rows, steps, count: int) -> None:
    """Replace rows (device, uint32) by sampled ones; write the LF steps to them to `steps`."""
    step_rows[launch(count, _THREADS)](
        *bwt.arrays, first_rows, bwt.text_start, rate, rows, steps, count
    )


def look_up(sampled, rate: int, text_length: int, rows, steps, count: int) -> None:
    """Replace sampled rows by text positions plus their steps."""
    look_up_rows[launch(count, _THREADS)](sampled, rate, text_length, rows, steps, count)


def whole_suffix_array(bwt, first_rows, rate: int, sampled):
    """Return the text positions of all rows (device, uint32) from those of every `rate`-th."""
    suffixes = cuda.device_array(bwt.n_rows, np.uint32)
    fill_suffixes[launch(bwt.n_rows, _THREADS)](
        *bwt.arrays, first_rows, bwt.text_start, rate, sampled, suffixes
    )
    return suffixes


def packed_text(genome, segment_text, segment_genome, text_length: int):
    """Return the text in 2 bits per base, like `bwarp.sequence.pack` (device, uint64).

    Separators are stored as A, so comparisons must check where segments end. There are two words
    more than the bases need, so that a window at any position can be read.
    """
    text = cuda.device_array(text_length // 32 + 3, np.uint64)
    pack_text[launch(text.size, _THREADS)](genome, segment_text, segment_genome, text_length, text)
    return text


@cuda.jit(device=True)
def segment_of(segment_text, position):
    """Return the number of the segment that contains a text position, by bisection."""
    low = uint32(0)
    high = uint32(segment_text.size - 1)
    while uint32(high - low) > uint32(1):
        middle = uint32((low + high) >> uint32(1))
        if segment_text[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@cuda.jit(device=True)
def genome_position(segment_text, segment_genome, position):
    """Return the genome position of a text position."""
    segment = segment_of(segment_text, position)
    return uint32(segment_genome[segment] + position - segment_text[segment])


@cuda.jit(device=True)
def position_of(sampled, rate, text_length, row, steps):
    """Return the text position `steps` after that of a sampled row, wrapping at the end of the
    text.

    If a forged suffix array leads outside the text, return the start of the text.
    """
    position = uint64(sampled[uint32(row // uint32(rate))]) + uint64(steps)
    if position >= uint64(text_length):
        position -= uint64(text_length)
        if position >= uint64(text_length):
            position = uint64(0)
    return uint32(position)


@kernel
def step_rows(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    text_start: int, rate: int, rows: uint32[::1], steps: uint32[::1], count: int,
):  # fmt: skip
    """Step from rows to sampled rows. One thread per row; about `rate` random reads."""
    i = cuda.grid(1)
    if i < count:
        row = first_row = rows[i]
        taken = uint32(0)
        while row % uint32(rate) != 0:
            row = lf_step(words, separator_rows, groups, first_rows, text_start, row)
            taken = uint32(taken + uint32(1))
            if row == first_row:  # only in a forged index: it would never end
                break
        rows[i] = row
        steps[i] = taken


@kernel
def look_up_rows(
    sampled: uint32[::1], rate: int, text_length: int, rows: uint32[::1], steps: uint32[::1],
    count: int,
):  # fmt: skip
    """Look up positions. One thread per row; one random read."""
    i = cuda.grid(1)
    if i < count:
        rows[i] = position_of(sampled, rate, text_length, rows[i], steps[i])


@kernel
def fill_suffixes(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    text_start: int, rate: int, sampled: uint32[::1], suffixes: uint32[::1],
):  # fmt: skip
    """Do both steps. One thread per row; about `rate` random reads."""
    i = cuda.grid(1)
    if i < suffixes.size:
        row = first_row = uint32(i)
        taken = uint32(0)
        while row % uint32(rate) != 0:
            row = lf_step(words, separator_rows, groups, first_rows, text_start, row)
            taken = uint32(taken + uint32(1))
            if row == first_row:
                break
        suffixes[i] = position_of(sampled, rate, suffixes.size, row, taken)


@kernel
def pack_text(
    genome: uint64[::1], segment_text: uint32[::1], segment_genome: uint32[::1], text_length: int,
    text: uint64[::1],
):  # fmt: skip
    """Pack text. One thread per 32 bases; neighbours read neighbouring words of the genome."""
    i = cuda.grid(1)
    if i < text.size:
        bits = uint64(0)
        position = 32 * i
        if position < text_length:
            segment = segment_of(segment_text, position)
            for shift in range(62, -2, -2):
                if position < text_length:
                    if position >= segment_text[segment + uint32(1)]:
                        segment = uint32(segment + uint32(1))
                    if position + 1 < segment_text[segment + uint32(1)]:
                        base = uint32(segment_genome[segment] + position - segment_text[segment])
                        word = genome[base >> uint32(5)]
                        code = word >> uint64(62 - 2 * (base & uint32(31)))
                        bits |= (code & uint64(3)) << uint64(shift)
                position += 1
        text[i] = bits
