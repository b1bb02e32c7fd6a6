"""The page with the first rows of a table."""

import io
import re

from bwarp.report.manifest import SHOWN, preview_page


def cells(page, tag):
    return re.findall(rf"<{tag}>(.*?)</{tag}>", page)


def test_a_long_table_is_cut_and_counted():
    table = b"query\tposition\n" + b"".join(b"q%d\t%d\n" % (i, i) for i in range(1234))
    page = preview_page("seeds.tsv", io.BytesIO(table), header=True)
    assert cells(page, "th") == ["query", "position"]
    assert len(cells(page, "td")) == 2 * SHOWN
    assert cells(page, "p") == [f"1,234 rows; here are the first {SHOWN} of them."]


def test_a_short_table_without_header_is_complete():
    page = preview_page("a.mums", io.BytesIO(b"> one\n  chr1   7  1  20\n"), header=False)
    assert cells(page, "td") == ["&gt;", "one", "chr1", "7", "1", "20"]
    assert cells(page, "p") == ["2 rows; here are all of them."]
    assert "<thead>" not in page


def test_an_empty_one():
    page = preview_page("t.tsv", io.BytesIO(b"query\tscore\n"), header=True)
    assert cells(page, "p") == ["There are no rows."]
    assert cells(preview_page("t", io.BytesIO(b""), header=True), "p") == ["There are no rows."]


def test_names_cannot_write_into_the_page():
    table = b"a\n<script>alert(1)</script>\t" + b"A" * 500 + b"\t\xff\n"
    page = preview_page("<b>", io.BytesIO(table), header=True)
    assert "<script>" not in page
    assert "<b>" not in page
    assert cells(page, "td")[1] == "A" * 57 + "..."
