"""The chart of loci per read."""

import html
import re

from bwarp.allmap.find import Certificate
from bwarp.report.charts import COLOURS
from bwarp.report.loci_chart import loci_chart


def bars_of(chart):
    return re.findall("<title>(.*?)</title>", chart)


def test_reads_by_loci_and_edits():
    many = [[], [0, 0, 7]]
    certificate = Certificate(
        reads=100, without=1_000, reads_by_loci=[[30, 5], [9, 0, 0, 2], [], *many, [1], [], [2, 4]]
    )
    chart = loci_chart(certificate)
    assert bars_of(chart) == [
        "no locus: 1,000", "1 locus: 42", "2 loci: 9", "3 to 4 loci: 7", "5 to 8 loci: 2"
    ]  # fmt: skip
    assert re.findall("</svg>([^<]+)</li>", chart) == [
        "0 edits", "1 edit", "2 edits", "3 edits", "4 edits", "5 edits or more", "no locus"
    ]  # fmt: skip
    assert "42.00 % of 100 reads have a single locus." in html.unescape(chart)
    # Two strata have reads with two loci.
    two = re.search("<title>2 loci.*?</g>", chart, re.DOTALL)[0]
    assert re.findall('fill="(#.*?)"', two) == [COLOURS[0], COLOURS[5]]


def test_few_edits_or_no_reads():
    chart = loci_chart(Certificate(reads=4, reads_by_loci=[[3], [1]]))
    assert re.findall("</svg>([^<]+)</li>", chart) == ["0 edits", "1 edit", "no locus"]
    assert bars_of(loci_chart(Certificate())) == ["no locus: 0"]
