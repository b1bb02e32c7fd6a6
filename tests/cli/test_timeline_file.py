"""--timeline: a file of events if a run succeeds, and errors."""

import json
from functools import partial

import pytest

from bwarp.cli.timeline_file import timeline_to
from bwarp.errors import UsageError
from bwarp.runtime.chunks import in_order
from bwarp.runtime.timeline import Span, add_later, on_timeline
from tests.helpers.programs.programs_here import run_here


@on_timeline("work")
def work(item):
    return item


def test_events_of_all_threads(tmp_path):
    path = tmp_path / "t.json"
    with timeline_to(str(path)):
        work(0)
        assert list(in_order(work, iter(range(20)), 2)) == list(range(20))
    trace = json.loads(path.read_text())
    events = [one for one in trace["traceEvents"] if one["ph"] == "X"]
    names = {one["tid"]: one["args"]["name"] for one in trace["traceEvents"] if one["ph"] == "M"}
    assert names[0] == "main"
    assert {one["tid"] for one in events} == set(names)
    assert sum(one["name"] == "work" for one in events) == 21
    assert (events[0]["name"], events[0]["tid"]) == ("work", 0)
    assert [one["ts"] for one in events] == sorted(one["ts"] for one in events)
    # It may be overwritten.
    with timeline_to(str(path)):
        pass
    assert json.loads(path.read_text()) == {"traceEvents": []}


def test_kernels_have_a_row_per_gpu(tmp_path):
    path = tmp_path / "t.json"
    with timeline_to(str(path)):
        for gpu in (0, 1, 0):
            add_later(partial(Span, "kernel", -1 - gpu, 10, 20))
        work(0)
    trace = json.loads(path.read_text())
    names = {one["tid"]: one["args"]["name"] for one in trace["traceEvents"] if one["ph"] == "M"}
    found = sorted(
        (names[one["tid"]], one["name"]) for one in trace["traceEvents"] if one["ph"] == "X"
    )
    kernels = [(f"kernels on GPU {gpu}", "kernel") for gpu in (0, 0, 1)]
    assert found == [*kernels, ("main", "work")]


def test_a_failed_run_leaves_no_file(tmp_path):
    with pytest.raises(ZeroDivisionError), timeline_to(str(tmp_path / "t.json")):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_without_the_option(tmp_path):
    with timeline_to(None):
        assert work(1) == 1


@pytest.mark.parametrize("name", ["-", "t.txt", "t.json.gz"])
def test_a_name_of_another_kind(name):
    with (
        pytest.raises(UsageError, match="the name must end in .json"),
        timeline_to(name),
    ):
        pass


def test_another_file_is_not_lost(tmp_path):
    path = tmp_path / "index.json"
    path.write_text("{}")
    with (
        pytest.raises(UsageError, match="the existing file is not a timeline"),
        timeline_to(str(path)),
    ):
        pass
    assert path.read_text() == "{}"
    # Nor an output of the run itself.
    path = tmp_path / "stats.json"
    with (
        pytest.raises(UsageError, match="the existing file is not a timeline"),
        timeline_to(str(path)),
    ):
        path.write_text("[]")
    assert path.read_text() == "[]"


def test_a_program(tmp_path):
    genome, path = tmp_path / "g.fa", tmp_path / "t.json"
    done = run_here(
        "simulate_genome", "-o", genome, "--length", 5000, "--timeline", path, folder=tmp_path
    )
    assert done.rc == 0, done.said
    assert genome.is_file()
    assert "traceEvents" in json.loads(path.read_text())
