"""The numbers of a sample that people see first, recounted by hand."""

import numpy as np

from bwarp.report.mapping_summary import share_at_least, summarise, summary_lines, truth_curve
from tests.helpers.cases.report_cases import EMPTY, MARKED, PAIRED, SINGLE, TRUTH


def test_a_sample():
    summary = summarise(PAIRED, TRUTH)
    assert (summary.reads, summary.mapped, summary.paired) == (1250, 80.0, 72.0)
    assert summary.confident == 68.0
    assert summary.correct == 96.0
    assert summarise(PAIRED).correct is None


def test_a_sample_without_reads():
    summary = summarise(EMPTY, {**TRUTH, "correct": [0] * 61, "incorrect": [0] * 61, "unmapped": 0})
    assert vars(summary) == {
        "reads": 0, "mapped": 0.0, "paired": None, "duplicates": None, "confident": 0.0,
        "correct": 0.0,
    }  # fmt: skip


def test_the_table_on_the_terminal():
    samples = {"long_name": summarise(PAIRED, TRUTH), "s": summarise(PAIRED)}
    assert summary_lines(samples) == [
        "sample     reads  mapped %  proper pairs %  quality >= 30 %  correct %",
        "long_name  1,250     80.00           72.00            68.00      96.00",
        "s          1,250     80.00           72.00            68.00          -",
    ]


def test_columns_that_say_nothing_are_left_out():
    assert summary_lines({"s": summarise(SINGLE)}) == [
        "sample  reads  mapped %  quality >= 30 %",
        "s       1,250     80.00            68.00",
    ]
    assert summary_lines({"s": summarise(SINGLE), "m": summarise(MARKED)}) == [
        "sample  reads  mapped %  proper pairs %  duplicates %  quality >= 30 %",
        "s       1,250     80.00               -             -            68.00",
        "m       1,250     80.00           72.00          2.00            68.00",
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
