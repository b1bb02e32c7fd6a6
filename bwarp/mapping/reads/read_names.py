"""Names of reads as bytes: found in headers, checked, and compared between the ends of pairs."""

import numpy as np

from bwarp.io.line_scan import find_blank
from bwarp.io.put_text import put_bytes
from bwarp.runtime.compiled_code import compiled

__all__ = ["first_bad_name", "first_difference", "pair_up", "take_headers"]


@compiled
def first_bad_name(text, names):
    """The first name with a byte that is not printable ASCII, or with @ at its start; or -1."""
    for i in range(len(names)):
        start, stop = np.uint64(names[i, 0]), np.uint64(names[i, 1])
        bad = start < stop and text[start] == 64
        # Without a way out of the loop it is one over vectors.
        for at in range(start, stop):
            bad |= text[at] < 33 or text[at] > 126
        if bad:
            return i
    return -1


@compiled
def take_headers(text, headers, taken, at, names, comments):
    """Copy headers to `taken`, from `at` on, and find the name and the comment of each.

    The name is the first word, without a /1 or /2 at its end; the comment is what follows the first
    blank or tab.
    """
    for i in range(len(headers)):
        begin, first, last = at, headers[i, 0], headers[i, 1]
        space = find_blank(text, first, last)
        at = put_bytes(taken, at, text, first, last)
        stop = begin + space - first
        comments[i, 0] = min(stop + 1, at)
        comments[i, 1] = at
        if stop - begin > 2 and taken[stop - 2] == 47 and 49 <= taken[stop - 1] <= 50:
            stop -= 2
        names[i, 0] = begin
        names[i, 1] = stop


@compiled
def pair_up(text, names, firsts):
    """List the first read of every template; returns how many templates there are."""
    n, read = 0, 0
    while read < len(names):
        firsts[n] = read
        n += 1
        start, length = names[read, 0], names[read, 1] - names[read, 0]
        read += 1
        if read < len(names) and names[read, 1] - names[read, 0] == length:
            same = True
            for at in range(length):
                same &= text[start + at] == text[names[read, 0] + at]
            read += same
    return n


@compiled
def first_difference(text_1, names_1, text_2, names_2):
    """The first name that is another one in the other list; or -1."""
    for i in range(len(names_1)):
        length = names_1[i, 1] - names_1[i, 0]
        if names_2[i, 1] - names_2[i, 0] != length:
            return i
        start_1, start_2 = np.uint64(names_1[i, 0]), np.uint64(names_2[i, 0])
        # Without a way out of the loop it is one over vectors.
        same = True
        for at in range(np.uint64(length)):
            same &= text_1[start_1 + at] == text_2[start_2 + at]
        if not same:
            return i
    return -1
