"""Plots: labelled axes, the expected curves, and the same bytes each time."""

import io
import xml.etree.ElementTree

import numpy as np
import pytest

from bwarp.index.parameters import PartSize
from bwarp.report import figures
from tests.helpers.cases.report_cases import EMPTY, PAIRED, SINGLE, TRUTH

PARTS = [PartSize("suffix array", 4_000_000, 3_000_000, "yes"), PartSize("genome", 10, None, "")]

DRAWN = {
    "qualities": (figures.draw_qualities, {"a": PAIRED, "b": EMPTY}),
    "insert sizes": (figures.draw_insert_sizes, {"a": PAIRED}),
    "stages": (figures.draw_stages, {"a": PAIRED, "b": SINGLE, "c": EMPTY}),
    "stages of one": (figures.draw_stages, {"a": PAIRED}),
    "depth": (figures.draw_depths, {"a": PAIRED, "b": SINGLE}),
    "truth": (figures.draw_truth, {"a": TRUTH}),
    "index sizes": (figures.draw_index_sizes, PARTS),
    "many": (figures.draw_qualities, {str(i): PAIRED for i in range(40)}),
}


@pytest.mark.parametrize("name", DRAWN)
def test_axes_are_labelled_and_bytes_are_the_same(name):
    draw, data = DRAWN[name]
    written = []
    for _ in range(2):
        figure = draw(data)
        (axes,) = figure.axes
        assert axes.get_xlabel()
        assert axes.get_ylabel() or all(label.get_text() for label in axes.get_yticklabels())
        assert bool(figure.legends) == (name != "many")
        file = io.BytesIO()
        figures.save(figure, file)
        written.append(file.getvalue())
    assert written[0] == written[1]
    xml.etree.ElementTree.fromstring(written[0])
    assert b"<dc:date>" not in written[0]


def test_the_lines_are_the_numbers():
    (axes,) = figures.draw_truth({"a": TRUTH}).axes
    (line,) = axes.get_lines()
    assert (line.get_xdata()[60], line.get_ydata()[60]) == (0, 80)
    assert np.isclose(line.get_xdata()[0], 1e6 * 30 / 990)
    (axes,) = figures.draw_qualities({"a": PAIRED}).axes
    assert axes.get_lines()[0].get_ydata()[30] == 85
