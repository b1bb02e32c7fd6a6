"""Charts: the lengths and positions of bars and lines, their names and ticks."""

import re
from xml.etree import ElementTree

import pytest

from bwarp.report.charts import BLUE, GREY, MOST_NAMED, Bar, bar_chart, line_chart

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('1')</script> & \"more\""


def parsed(chart):
    return ElementTree.fromstring(f"<div>{chart}</div>")


def texts(chart):
    return [one.text for one in parsed(chart).iter(f"{SVG}text")]


def test_the_longest_bar_has_the_full_width():
    bars = [Bar("a", [1, 3], "4"), Bar("b", [2, 0], "2"), Bar("none", [0, 0], "0")]
    chart = bar_chart(bars, {"mapped": BLUE, "not mapped": GREY})
    drawn = [one.attrib for one in parsed(chart).iter(f"{SVG}rect")]
    assert [(one["x"], one["width"], one["fill"]) for one in drawn] == [
        ("150.0", "47.5", BLUE), ("197.5", "142.5", GREY), ("150.0", "95.0", BLUE),
    ]  # fmt: skip
    assert texts(chart) == ["a", "4", "b", "2", "none", "0"]
    keys = re.findall("</svg>([^<]+)</li>", chart)
    assert keys == ["mapped", "not mapped"]
    # Of a given total, the rest stays empty.
    chart = bar_chart([Bar("a", [25], "25 %")], {"": BLUE}, total=100)
    assert next(parsed(chart).iter(f"{SVG}rect")).attrib["width"] == "47.5"
    assert "legend" not in chart


def test_many_bars_are_thin():
    chart = bar_chart([Bar(f"s{i}", [i], f"{i}") for i in range(200)], {"": BLUE})
    assert texts(chart) == []
    titles = [one.text for one in parsed(chart).iter(f"{SVG}title")]
    assert titles[:2] == ["s0: 0", "s1: 1"]
    height = float(next(parsed(chart).iter(f"{SVG}svg")).attrib["viewBox"].split()[3])
    assert height <= 600


def test_lines():
    curves = {"a": {0: 100.0, 5: 50.0, 10: 0.0}, "b": {0: 100.0, 20: 20.0}}
    chart = line_chart(curves, "depth of at least", "reference (%)", y_end=100)
    lines = {
        one[0].text: [tuple(map(float, point.split(","))) for point in one.attrib["points"].split()]
        for one in parsed(chart).iter(f"{SVG}polyline")
    }
    assert lines == {
        "a": [(44, 26), (145, 131), (246, 236)],
        "b": [(44, 26), (448, 194)],
    }
    assert texts(chart) == [
        *("reference (%)", "depth of at least"),
        *("0", "20", "40", "60", "80", "100"),
        *("0", "5", "10", "15", "20"),
    ]
    assert re.findall("</svg>([^<]+)</li>", chart) == ["a", "b"]


@pytest.mark.parametrize("curve", [{0: 100.0}, {3: 0.0}, {0: 0.0, 1: 0.0}, {0: 1e9, 2_000_000: 3}])
def test_lines_of_any_extent(curve):
    drawn = parsed(line_chart({"a": curve}, "x", "y"))
    for line in drawn.iter(f"{SVG}polyline"):
        for point in line.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert (44 <= x <= 448, 26 <= y <= 236) == (True, True)


def test_of_many_lines_only_the_marked_ones_have_names():
    names = [f"s{i}" for i in range(MOST_NAMED + 1)]
    few, many = names[:-1], names
    for shown, keys in ((few, few), (many, ["s1", "s7", "the other samples"])):
        chart = line_chart({name: {0: 1.0, 1: 0.5} for name in shown}, "x", "y", ["s1", "s7"])
        assert re.findall("</svg>([^<]+)</li>", chart) == keys
        styles = re.findall(r"<polyline [^>]*?(stroke=[^>]*)>", chart)
        assert len(styles) == len(shown)
        assert len(set(styles)) == len(keys)
    # Marked lines are drawn over the others.
    titles = re.findall("<title>(.*?)</title>", chart)
    assert titles[-2:] == ["s1", "s7"]


def test_names_are_escaped():
    for chart in (
        bar_chart([Bar(HOSTILE, [1], HOSTILE)], {HOSTILE: BLUE}),
        line_chart({HOSTILE: {0: 1.0}, "b": {0: 2.0}}, HOSTILE, HOSTILE),
    ):
        assert "<script" not in chart
        assert HOSTILE in [*texts(chart), *(one.text for one in parsed(chart).iter(f"{SVG}title"))]
