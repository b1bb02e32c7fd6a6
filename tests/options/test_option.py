"""Kinds of values: what they accept from a command line, a configuration, and Python."""

import argparse

import numpy as np
import pytest

from bwarp.errors import UsageError
from bwarp.options.option import PROGRAM, OneOf, Option, Task, Text, Whole, YesNo


@pytest.mark.parametrize("text", ["", "x", "1.5", "-1", "11", "1e1", "ten"])
def test_text_that_is_not_a_whole_number_in_bounds(text):
    with pytest.raises(UsageError) as caught:
        Whole(0, 10).parse(text)
    assert str(caught.value) == f"{text!r} is not a whole number from 0 to 10"


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("10", 10), (" 7 ", 7)])
def test_text_that_is_a_whole_number(text, value):
    assert Whole(0, 10).parse(text) == value


def test_a_word_in_place_of_a_number():
    value = Whole(0, 4, note="none", word="auto")
    assert value.parse("auto") is None
    assert Option("m", value, "").check("auto") is None
    assert value.write == "auto, or a whole number from 0 (none) to 4"
    assert Option("m", value, "").rule()["default"] == "auto"
    with pytest.raises(UsageError, match="^'5' is not .* from 0 to 4, or auto$"):
        value.parse("5")


def test_multiples():
    rate = Option("rate", Whole(32, 96, multiple=32), "", 64)
    assert rate.rule() == {
        "type": "integer", "minimum": 32, "maximum": 96, "multipleOf": 32, "default": 64,
        "write": "a multiple of 32 from 32 to 96",
    }  # fmt: skip
    assert rate.check(np.int64(96)) == 96
    with pytest.raises(UsageError, match="^rate 48 is not a multiple of 32 from 32 to 96$"):
        rate.check(48)


@pytest.mark.parametrize("value", [7, "8", 8.0, True, None])
def test_values_refused_from_python(value):
    with pytest.raises(UsageError) as caught:
        Option("k", Whole(8, 64), "", 20).check(value)
    assert str(caught.value) == f"k {value!r} is not a whole number from 8 to 64"


def test_options_without_a_default_may_be_none():
    assert Option("k", Whole(8, 64), "").check(None) is None


def test_one_of_some():
    side = Option("side", OneOf((3, 5)), "", 3)
    assert side.value.write == "3 or 5"
    assert side.check(5) == 5
    with pytest.raises(UsageError, match="^side 4 is not one of 3, 5$"):
        side.check(4)
    assert OneOf(("auto", "on", "off")).write == "auto, or on or off in quotes"


def test_a_penalty_is_a_score_below_0():
    assert Whole(1, 9, negated=True).argument()["type"]("4") == -4


TASK = Task({
    "": (
        Option("queries", Text("Q.fa", "a path"), "what to search", required=True),
        Option("max_hits", Whole(0, 9), "no more than these 3% with `--all`", 5, short="-m"),
    ),
    "output": (
        Option("all", YesNo(), "list `all`", False, in_workflow=", and more"),
        Option("stats", Text("S.json"), "counts", only=PROGRAM),
        Option("score", Whole(1, 9), "a score", unset="that of bwa"),
    ),
})  # fmt: skip


def test_arguments_and_their_help():
    parser = argparse.ArgumentParser()
    for option in TASK.options:
        option.add_to(parser)
    options = parser.parse_args(["--queries", "q", "-m", "3"])
    assert vars(options) == {
        "queries": "q", "max_hits": 3, "all": False, "stats": None, "score": None
    }  # fmt: skip
    said = parser.format_help()
    assert "no more than these 3% with --all (default: 5)" in " ".join(said.split())
    assert "a score (default: that of bwa)" in said
    assert "list all\n" in said


def test_the_rule_of_a_section():
    rule = TASK.rule()
    assert list(rule["properties"]) == ["queries", "max_hits", "all", "score"]
    assert rule["required"] == ["queries"]
    assert rule["write"] == "a section with keys such as queries, max_hits and all"
    assert "default" not in rule["properties"]["score"]


def test_rows_of_the_tables():
    assert [TASK[name].row("find.") for name in ("queries", "max_hits", "all", "score")] == [
        ["`find.queries`", "required", "a path", "what to search"],
        ["`find.max_hits`", "`5`", "a whole number from 0 to 9",
         "no more than these 3% with `all`"],
        ["`find.all`", "`false`", "true or false", "list `all`, and more"],
        ["`find.score`", "that of bwa", "a whole number from 1 to 9", "a score"],
    ]  # fmt: skip
