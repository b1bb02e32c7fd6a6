"""Types of arguments as text, and back."""

import numpy as np
import pytest
from numba import typeof, types

from bwarp.cli.first_use.listed_functions import text_of_types, types_of_text
from bwarp.io.names import Names

BYTES = types.uint8[::1]
RECORDS = np.zeros(4, [("start", np.int64), ("strand", np.uint8)])
READ_ONLY = BYTES.copy(readonly=True)

CASES = {
    "()": (),
    "(int64, )": (types.int64,),
    "(boolean, float64, none, )": (types.boolean, types.float64, types.none),
    "(uint8[::1], int32[:, ::1], uint16[:], )": (BYTES, types.int32[:, ::1], types.uint16[:]),
    "(readonly(uint8[::1]), )": (READ_ONLY,),
    "((int64, float64, ), (int64, int64, ), )": (
        types.Tuple((types.int64, types.float64)),
        types.UniTuple(types.int64, 2),
    ),
    "(named('bwarp.io.names.Names', readonly(uint8[::1]), int64[:, ::1]), )": (
        types.NamedTuple((READ_ONLY, types.int64[:, ::1]), Names),
    ),
    "(omitted(3), )": (types.Omitted(3),),
    "(records([('start', '<i8'), ('strand', '|u1')], 1), )": (typeof(RECORDS),),
}


@pytest.mark.parametrize("text", CASES)
def test_types_go_to_text_and_back(text):
    assert text_of_types(CASES[text]) == text
    assert types_of_text(text) == CASES[text]


@pytest.mark.parametrize(
    "kind",
    [
        types.Array(types.uint8, 2, "F"),
        types.Array(types.uint8, 1, "C", aligned=False),
        typeof(RECORDS[::2]),
    ],
)
def test_types_without_text_are_refused(kind):
    with pytest.raises(ValueError, match="no text for"):
        text_of_types((kind,))


@pytest.mark.parametrize("text", ["(1, )", "(uint8 + 1, )", "(open('x'), )"])
def test_other_text_is_not_a_type(text):
    with pytest.raises(ValueError, match="no type is written as"):
        types_of_text(text)
