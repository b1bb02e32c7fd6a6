"""Types of arguments as text, and back."""

from typing import NamedTuple

import numpy as np
import pytest
from numba import typeof, types

from bwarp.io.names import Names
from bwarp.runtime.type_text import (
    field_names,
    kind_of,
    text_of_arguments,
    text_of_types,
    types_of_text,
)

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


def test_named_tuples_with_the_same_types_differ_by_their_fields():
    text = text_of_types((typeof(Pair(1, 2)), typeof(Names(np.zeros(1, np.uint8), 3))))
    module = Pair.__module__
    assert field_names(text) == f"{module}.Pair(numbers,count) bwarp.io.names.Names(text,bounds)"
    assert field_names("(int64, )") == ""
    with pytest.raises(AttributeError):
        field_names("(named('bwarp.io.names.Former', int64), )")


def test_a_class_that_cannot_be_imported_has_no_text():
    class Local(NamedTuple):
        count: int

    assert text_of_arguments((Local(3),)) is None
    with pytest.raises(ValueError, match="no text for"):
        text_of_types((typeof(Local(3)),))


@pytest.mark.parametrize("text", ["(1, )", "(uint8 + 1, )", "(open('x'), )"])
def test_other_text_is_not_a_type(text):
    with pytest.raises(ValueError, match="no type is written as"):
        types_of_text(text)


class Pair(NamedTuple):
    numbers: np.ndarray
    count: int


ARGUMENTS = [
    np.zeros(3, np.uint8),
    np.zeros((2, 3), np.int64),
    np.zeros((2, 3), np.int64)[:, ::2],
    np.zeros(4, np.float32)[::2],
    np.zeros(0, bool),
    np.frombuffer(b"abc", np.uint8),
    np.zeros(2, [("start", "<i8"), ("code", "u1")]),
    7,
    -(1 << 63),
    True,
    None,
    2.5,
    np.uint64(3),
    np.int8(3),
    np.bool_(True),
    (1, 2),
    (1, 2.0, (np.zeros(1, np.uint16),)),
    (),
    Pair(np.zeros(1, np.int32), 3),
]


@pytest.mark.parametrize("argument", ARGUMENTS, ids=repr)
def test_arguments_have_the_text_of_their_types(argument):
    assert text_of_arguments((argument, 1)) == text_of_types((typeof(argument), types.int64))


@pytest.mark.parametrize(
    "argument",
    [
        1 << 63,
        "text",
        np.zeros(()),
        np.zeros((2, 3)).T,
        np.zeros(2, ">i8"),
        np.zeros(9, np.uint8)[1:].view(np.int64),
        np.zeros(2, "M8[s]"),
        [1],
        (1, "text"),
    ],
    ids=repr,
)
def test_unusual_arguments_have_no_text(argument):
    assert text_of_arguments((argument,)) is None


def test_arguments_of_different_types_have_different_kinds():
    texts = {kind_of(argument): text_of_arguments((argument,)) for argument in ARGUMENTS}
    assert len(set(texts.values())) == len({text_of_arguments((one,)) for one in ARGUMENTS})
    for one in ARGUMENTS:
        assert texts[kind_of(one)] == text_of_arguments((one,))
    assert kind_of(1 << 63) != kind_of(1)
