"""The picture of a timeline: a row a thread, and the seconds of each step by itself."""

import json
import subprocess
import sys
from xml.etree import ElementTree

EVENTS = [
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": "main"}},
    {"name": "thread_name", "ph": "M", "pid": 1, "tid": 1, "args": {"name": "thread 1"}},
    {"name": "align <all>", "ph": "X", "pid": 1, "tid": 0, "ts": 0.0, "dur": 3e6},
    {"name": "sort", "ph": "X", "pid": 1, "tid": 0, "ts": 1e6, "dur": 1e6},
    {"name": "wait for reads", "ph": "X", "pid": 1, "tid": 1, "ts": 0.5e6, "dur": 0.25e6},
]


def test_steps_are_drawn_and_added_up(checkout, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": EVENTS}))
    program = checkout / "benchmarks" / "timeline_picture.py"
    given = [tmp_path / "t.json", "-o", tmp_path / "t.svg", "--title", "Two threads"]
    subprocess.run([sys.executable, program, *given], check=True)
    texts = [
        element.text
        for element in ElementTree.parse(tmp_path / "t.svg").iter()
        if element.tag.endswith("text")
    ]
    assert texts[:3] == ["Two threads", "main", "thread 1"]
    assert texts[-3:] == ["align <all>, 2.00 s", "sort, 1.00 s", "wait for reads, 0.25 s"]
