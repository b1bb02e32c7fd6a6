"""The pages on mapped reads: sentences, numbers and plots of known statistics."""

import html
import re

import numpy as np
import pytest

from bwarp.index.parameters import PartSize
from bwarp.report.mapping_page import mapping_page
from bwarp.report.mapping_steps_page import mapping_steps_page
from bwarp.report.step_times import Jobs
from tests.helpers.cases.report_cases import EMPTY, MARKED, PAIRED, SINGLE, TRUTH

TITLES = ["Mapped reads and duplicates", "Depth and breadth", "Insert size", "Mapping quality"]


def titles(page):
    return re.findall("<h2>(.*?)</h2>", page)


def sentences(page):
    return [html.unescape(text) for text in re.findall("<p>(.*?)</p>", page)]


def cells(page):
    rows = re.findall("<tr>(.*?)</tr>", page)
    return [[html.unescape(c) for c in re.findall("<t[hd]>(.*?)</t[hd]>", row)] for row in rows]


def test_one_sample():
    page = mapping_page("Reads mapped to g", {"a": PAIRED}, {"a": TRUTH})
    assert "<h1>Reads mapped to g</h1>" in page
    assert "1 sample with 1,250 reads, mapped by bwarp" in page
    assert titles(page) == TITLES
    assert cells(page) == [
        ["Sample", "Reads", "Mapped (%)", "Proper pairs (%)", "Quality \u2265\u00a030 (%)",
         "Errors (%)", "Split (%)", "Mean depth (X)",
         *(f"\u2265\u00a0{depth}\u00a0X (%)" for depth in (1, 10, 20, 30)),
         "Insert size (bases)", "Correct (%)"],
        ["a", "1,250", "80.00", "72.00", "68.00", "0.50", "2.00", "3.00", "75", "0", "0", "0",
         "314", "96.00"],
    ]  # fmt: skip
    assert sentences(page) == [
        "80.00 % of the reads are mapped, 72.00 % in proper pairs. Duplicates were not marked.",
        "The mean depth is 3.00. 75 % of the reference is covered, and 0 % has a depth of at least "
        "10.",
        "The median insert size is 314 bases. The middle half of the pairs spans 8 bases.",
        "68.00 % of the reads have a mapping quality of 30 or more: at most one in a thousand of "
        "them is incorrect.",
    ]
    assert "duplicates</li>" not in page
    assert "Estimated from up to 10,000 positions" in page
    counted = PAIRED | {"breadth": np.array([100.0, 98]), "mean_depth": 2.5}
    page = mapping_page("Reads mapped to g", {"a": counted}, {})
    assert "The mean depth is 2.50. 98 % of the reference is covered, and 0 %" in page
    assert "Estimated" not in page


def test_several_samples():
    fewer = MARKED | {"mapped": 500, "duplicates": 250}
    page = mapping_page("m", {"a": MARKED, "b": fewer, "single": SINGLE}, {})
    assert sentences(page)[0] == (
        "40.00 % (b) to 80.00 % (a) of the reads are mapped, 72.00 % in proper pairs; 2.00 % (a) "
        "to 20.00 % (b) are duplicates."
    )
    assert [row[:5] for row in cells(page)[1:]] == [
        ["a", "1,250", "80.00", "72.00", "2.00"],
        ["b", "1,250", "40.00", "72.00", "20.00"],
        ["single", "1,250", "80.00", "-", "-"],
    ]
    assert "<title>b: 40.00 % mapped</title>" in page
    assert page.count("<polyline") == 3 + 2 + 3


def test_samples_without_pairs_or_reads():
    assert titles(mapping_page("m", {"a": SINGLE}, {})) == [*TITLES[:2], TITLES[3]]
    page = mapping_page("m", {"none": EMPTY}, {})
    assert titles(page) == []
    assert '<p class="warning">none: there are no reads.</p>' in page
    page = mapping_page("m", {"none": EMPTY, "a": PAIRED}, {})
    assert titles(page) == TITLES
    assert "<title>none" not in page
    assert sentences(page)[0].startswith("80.00 % of the reads")


def steps(samples, timelines=()):
    parts = [
        PartSize("suffix array", 4_000_000, 3_000_000, "yes"),
        PartSize("genome", 10, None, ""),
    ]
    jobs = {"map_reads": Jobs(2, 3.25, frozenset({"cpu"}))}
    truths = dict.fromkeys(samples, TRUTH)
    return mapping_steps_page(samples, truths, parts, jobs, dict(timelines))


def test_the_page_for_developers():
    page = steps({"a": PAIRED, "b": PAIRED}, {"t.svg": "<svg>7</svg>"})
    assert titles(page) == [
        "Where candidates went", "Times of the steps", "Index sizes", "Correct and incorrect reads"
    ]  # fmt: skip
    assert "<title>hits located: 18,000</title>" in page
    assert "<title>map_reads: 3.2 s, 2 jobs</title>" in page
    assert sentences(page)[0] == (
        "Located hits per read: 7.2; candidates per read: 4.4; alignments with gaps per read: 0.32."
    )
    rows = cells(page)
    assert ["suffix array", "4,000,000", "3,000,000"] in rows
    assert ["genome", "10", "-"] in rows
    assert [row for row in rows if row[0] == "a"] == [
        ["a", "0", "96.00", "30,303"],
        ["a", "10", "87.00", "11,364"],
        ["a", "30", "87.00", "11,364"],
        ["a", "60", "80.00", "0"],
    ]
    assert 'src="data:image/svg+xml;base64,PHN2Zz43PC9zdmc+" alt="Timeline t.svg"' in page
    assert titles(mapping_steps_page({"a": EMPTY}, {}, [], {}, {})) == ["Where candidates went"]


@pytest.mark.parametrize("n_samples", [1, 2, 14, 15, 200])
def test_pages_are_alone_and_hold_any_name(n_samples):
    hostile = "<script>alert(1)</script>\"'&"
    names = [hostile, "ünü", *map(str, range(n_samples))][:n_samples]
    samples = {name: MARKED | {"mapped": 1000 - i} for i, name in enumerate(names)}
    for page, again in (
        (mapping_page(hostile, samples, {}), mapping_page(hostile, samples, {})),
        (steps(samples), steps(samples)),
    ):
        assert page == again
        assert page.isascii()
        assert "<script" not in page
        assert html.escape(hostile) in page
        assert not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page)
