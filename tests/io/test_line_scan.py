"""Vector scans of lines against single-byte loops, at every alignment and distance to the end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.io.line_scan import (
    SLACK,
    copy_between,
    count_byte,
    encode_line,
    find_blank,
    find_byte,
    letter_table,
    line_end,
)
from bwarp.sequence import CODE_OF_BYTE

stretches = st.tuples(
    st.lists(st.sampled_from(b"\n\rACGTNacgu!~ \t\x7f\x80\xff\x00"), max_size=300), st.data()
)


def drawn(stretch):
    data, draw = stretch
    start = draw.draw(st.integers(0, len(data)))
    stop = draw.draw(st.integers(start, len(data)))
    return np.array(data, np.uint8), start, stop


@settings(deadline=None)  # the first call compiles
@given(stretches)
def test_find_and_count(stretch):
    data, start, stop = drawn(stretch)
    part = data[start:stop].tolist()
    assert find_byte(data, start, stop, 10) == (start + part.index(10) if 10 in part else stop)
    blanks = [i for i, letter in enumerate(part) if letter in b" \t"]
    assert find_blank(data, start, stop) == (start + blanks[0] if blanks else stop)
    assert count_byte(data, start, stop, 10) == part.count(10)


@settings(deadline=None)  # the first call compiles
@given(stretches)
def test_line_end(stretch):
    data, start, _ = drawn(stretch)
    line = data[start:].tobytes().split(b"\n")[0]
    text = line.removesuffix(b"\r")
    assert line_end(data, start) == (start + len(line), start + len(text))


@settings(deadline=None)  # the first call compiles
@given(stretches, st.integers(0, 70))
def test_encode(stretch, used):
    data, start, stop = drawn(stretch)
    codes = np.full(used + data.size + SLACK, 99, np.uint8)
    reached = encode_line(data, start, stop, letter_table(CODE_OF_BYTE), codes, used)
    expected = CODE_OF_BYTE[data[start:stop]]
    refused = np.flatnonzero(expected == 255)
    assert reached == (start + refused[0] if refused.size else stop)
    assert np.array_equal(codes[used : used + reached - start], expected[: reached - start])
    assert (codes[:used] == 99).all()


@settings(deadline=None)  # the first call compiles
@given(stretches, st.integers(0, 70))
def test_copy(stretch, used):
    data, start, stop = drawn(stretch)
    copied = np.full(used + data.size + SLACK, 99, np.uint8)
    reached = copy_between(data, start, stop, 33, 126, copied, used)
    part = data[start:stop]
    refused = np.flatnonzero((part < 33) | (part > 126))
    assert reached == (start + refused[0] if refused.size else stop)
    assert np.array_equal(copied[used : used + reached - start], part[: reached - start])
    assert (copied[:used] == 99).all()


@pytest.mark.parametrize("size", [1, 15, 16, 31, 32, 63, 64, 65, 127, 128, 129])
def test_every_position(size):
    for at in range(size):
        data = np.full(size, 65, np.uint8)
        data[at] = 10
        assert find_byte(data, 0, size, 10) == at
        codes = np.empty(size + SLACK, np.uint8)
        assert encode_line(data, 0, size, letter_table(CODE_OF_BYTE), codes, 0) == at
        assert copy_between(data, 0, size, 33, 126, codes, 0) == at


def test_the_table_refuses_every_byte_beyond_ascii():
    table = letter_table(np.zeros(256, np.uint8))
    assert table.shape == (128,)
    assert (table[:127] == 0).all()
    assert table[127] == 255
