"""The picture of a timeline: a row per thread, and the seconds of each step alone."""

import json
from xml.etree import ElementTree

import pytest

from tests.helpers.programs.programs_here import run_here

EVENTS = [
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "main"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "thread 1"}},
    {"name": "align <all>", "ph": "X", "pid": 1, "tid": 0, "ts": 0.0, "dur": 3e6},
    {"name": "sort", "ph": "X", "pid": 1, "tid": 0, "ts": 1e6, "dur": 1e6},
    {"name": "wait for reads", "ph": "X", "pid": 1, "tid": 1, "ts": 0.5e6, "dur": 0.25e6},
]


def drawn(folder, text, *more):
    (folder / "t.json").write_text(text)
    given = (folder / "t.json", "-o", folder / "t.svg", *more)
    return run_here("draw_timeline", *given, folder=folder)


def test_steps_are_drawn_and_added_up(tmp_path):
    done = drawn(tmp_path, json.dumps({"traceEvents": EVENTS}), "--title", "Two threads")
    assert done.rc == 0, done.said
    texts = [
        element.text
        for element in ElementTree.parse(tmp_path / "t.svg").iter()
        if element.tag.endswith("text")
    ]
    assert texts[:3] == ["Two threads", "main", "thread 1"]
    assert texts[-3:] == ["align <all>, 2.00 s", "sort, 1.00 s", "wait for reads, 0.25 s"]


def test_a_run_without_steps(tmp_path):
    assert drawn(tmp_path, json.dumps({"traceEvents": EVENTS[:1]})).rc == 0
    assert ">t.json</text>" in (tmp_path / "t.svg").read_text()
    ElementTree.parse(tmp_path / "t.svg")


def test_a_run_that_took_no_time(tmp_path):
    step = EVENTS[2] | {"dur": 0.0}
    assert drawn(tmp_path, json.dumps({"traceEvents": [*EVENTS[:2], step]})).rc == 0
    ElementTree.parse(tmp_path / "t.svg")


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"traceEvents": 3}', '"\\u00e4',
        json.dumps({"traceEvents": EVENTS[2:]}),
        json.dumps({"traceEvents": [*EVENTS[:2], EVENTS[1] | {"tid": "1"}]}),
        json.dumps({"traceEvents": [*EVENTS[:2], EVENTS[2] | {"dur": float("inf")}]}),
    ],
)  # fmt: skip
def test_not_a_timeline(tmp_path, text):
    done = drawn(tmp_path, text)
    assert done.rc == 1
    assert done.last_line == (
        f"draw_timeline.py: error: {tmp_path}/t.json: not a timeline: give a file that --timeline "
        "wrote"
    )
    assert not (tmp_path / "t.svg").exists()


def test_a_picture_has_the_name_of_one(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": EVENTS}))
    done = run_here("draw_timeline", tmp_path / "t.json", "-o", "t.png", folder=tmp_path)
    assert done.rc == 2
    assert done.last_line == "draw_timeline.py: error: t.png: the output must end in .svg"
    assert not (tmp_path / "t.png").exists()
