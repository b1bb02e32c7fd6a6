"""Tags of records, in the form of SAM or of BAM.

NM:i:3     a tab and the text, in SAM         NM C 3 in BAM
"""

import numpy as np

from bwarp.io.bam.records import put_int32, put_integer_tag, put_tag
from bwarp.io.put_text import put_number
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["begin_tag", "end_text", "put_integer", "put_thousandths"]

_INTEGER = ord("i")
_TAB, _COLON = b"\t:"


@compiled(inline="always")
def begin_tag(out, at, tag, kind, is_binary):
    """The name and kind of a tag: such as NM:i: after a tab, in text."""
    # Every tag and kind would be a type of its own, and a function compiled for it.
    name = np.int64(tag[0]), np.int64(tag[1])
    return _put_tag_name(out, at, name, np.int64(kind), np.bool_(is_binary))


@compiled
def _put_tag_name(out, at, name, kind, is_binary):
    out = uncounted(out)
    if is_binary:
        at = put_tag(out, at, name[0], name[1], kind)
    else:
        out[at] = _TAB
        out[at + 1] = name[0]
        out[at + 2] = name[1]
        out[at + 3] = _COLON
        out[at + 4] = kind
        out[at + 5] = _COLON
        at += 6
    return at


@compiled(inline="always")
def end_text(out, at, is_binary):
    if is_binary:
        out[at] = 0
        at += 1
    return at


@compiled(inline="always")
def put_integer(out, at, tag, number, is_binary):
    name = np.int64(tag[0]), np.int64(tag[1])
    return _put_integer_of(out, at, name, np.int64(number), is_binary)


@compiled
def _put_integer_of(out, at, name, number, is_binary):
    out = uncounted(out)
    if is_binary:
        at = put_integer_tag(out, at, name[0], name[1], number)
    else:
        at = put_number(out, _put_tag_name(out, at, name, np.int64(_INTEGER), False), number)
    return at


@compiled
def put_thousandths(out, at, number, is_binary):
    """A number between 0 and 1: with three digits at most, or the bits of a float32."""
    out = uncounted(out)
    if is_binary:
        return put_int32(out, at, np.int64(np.float32(number / 1000).view(np.int32)))
    for digit, power in ((48, 1000), (46, 0), (48, 100), (48, 10), (48, 1)):
        out[at] = digit + (number // power % 10 if power else 0)
        at += 1
    while out[at - 1] == 48:
        at -= 1
    return at
