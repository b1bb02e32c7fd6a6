"""The main numbers of a sample, counted by hand."""

import re

import numpy as np
from docutils.core import publish_parts

from bwarp.report.mapping_summary import (
    depth_curve,
    mapping_warnings,
    share_at_least,
    summarise,
    summary_lines,
    summary_table,
    truth_curve,
)
from tests.helpers.cases.report_cases import EMPTY, MARKED, PAIRED, SINGLE, TRUTH


def test_a_sample():
    summary = summarise(PAIRED, TRUTH)
    assert (summary.reads, summary.mapped, summary.paired) == (1250, 80.0, 72.0)
    assert summary.confident == 68.0
    assert summary.correct == 96.0
    assert (summary.errors, summary.split, summary.depth) == (0.5, 2.0, 3.0)
    assert summarise(PAIRED).correct is None


def test_a_sample_without_reads():
    summary = summarise(EMPTY, {**TRUTH, "correct": [0] * 61, "incorrect": [0] * 61, "unmapped": 0})
    assert vars(summary) == {
        "reads": 0, "mapped": 0.0, "paired": None, "duplicates": None, "confident": 0.0,
        "errors": 0.0, "split": 0.0, "depth": None, "correct": 0.0,
    }  # fmt: skip


def test_the_table_on_the_terminal():
    samples = {"long_name": summarise(PAIRED, TRUTH), "s": summarise(PAIRED)}
    assert summary_lines(samples) == [
        "sample     reads  mapped %  proper pairs %  quality >= 30 %  errors %  split %  mean depth"
        "  correct %",
        "long_name  1,250     80.00           72.00            68.00      0.50     2.00        3.00"
        "      96.00",
        "s          1,250     80.00           72.00            68.00      0.50     2.00        3.00"
        "          -",
    ]


def test_the_front_page_warns_of_a_wrong_reference():
    """Without a warning if a fifth of the reads is mapped."""
    samples = {
        name: {"reads": reads, "mapped": mapped}
        for name, reads, mapped in (("few_", 11_786, 154), ("fifth", 10, 2), ("none", 0, 0))
    }
    text = summary_table({"few_": summarise(PAIRED)}) + mapping_warnings(samples)
    page = publish_parts(text, writer="html")["body"]
    assert re.findall("<p>(<strong>.*)</p>", page) == [
        "<strong>Warning:</strong> few_: only 154 of 11,786 reads (1.3 %) are mapped: check "
        "that the reads are from this reference."
    ]


def test_the_table_on_the_front_page():
    samples = {"a_b_": summarise(PAIRED | {"edits": 0}), "s": summarise(PAIRED)}
    page = publish_parts(summary_table(samples), writer="html")["body"]
    rows = re.findall("<tr>(.*?)</tr>", page, re.DOTALL)
    cells = [re.findall("<t[hd].*?>(.*?)</t[hd]>", row) for row in rows]
    assert cells == [
        ["sample", "reads", "mapped %", "proper pairs %", "quality &gt;= 30 %", "errors %",
         "split %", "mean depth"],
        ["a_b_", "1,250", "80.00", "72.00", "68.00", "0.00", "2.00", "3.00"],
        ["s", "1,250", "80.00", "72.00", "68.00", "0.50", "2.00", "3.00"],
    ]  # fmt: skip


def test_depths():
    assert depth_curve(PAIRED["depths"]) == {0: 100.0, 1: 75.0, 2: 75.0, 3: 50.0, 4: 25.0}
    assert depth_curve([]) == {}
    many = depth_curve(np.concatenate([np.arange(10_000), [10**6]]))
    assert list(many)[:2] == [0, 33]
    assert len(many) < 320
    assert list(many)[-1] < 10_000


def test_empty_columns_are_left_out():
    single, marked = (counts | {"reference_bases": 0} for counts in (SINGLE, MARKED))
    assert summary_lines({"s": summarise(single)}) == [
        "sample  reads  mapped %  quality >= 30 %  errors %  split %",
        "s       1,250     80.00            68.00      0.50     2.00",
    ]
    assert summary_lines({"s": summarise(single), "m": summarise(marked)}) == [
        "sample  reads  mapped %  proper pairs %  duplicates %  quality >= 30 %  errors %  split %",
        "s       1,250     80.00               -             -            68.00      0.50     2.00",
        "m       1,250     80.00           72.00          2.00            68.00      0.50     2.00",
    ]


def test_shares_of_qualities():
    shares = share_at_least(PAIRED["mapping_qualities"])
    assert (shares[0], shares[1], shares[29], shares[30], shares[60]) == (100, 90, 90, 85, 85)
    assert share_at_least([0] * 61).tolist() == [0] * 61


def test_correct_and_incorrect_at_every_quality():
    correct, incorrect = truth_curve(TRUTH)
    assert (correct[0], correct[1], correct[30], correct[31], correct[60]) == (96, 87, 87, 80, 80)
    assert incorrect[0] == 1e6 * 30 / 990
    assert incorrect[30] == 1e6 * 10 / 880
    assert incorrect[60] == 0
    nothing = {**TRUTH, "correct": [5] + [0] * 60, "incorrect": [0] * 61}
    assert np.isnan(truth_curve(nothing)[1][1:]).all()
