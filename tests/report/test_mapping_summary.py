"""The main numbers of a sample, counted by hand."""

import numpy as np

from bwarp.report.mapping_summary import (
    depth_curve,
    insert_quartiles,
    insert_size_curve,
    mapping_warnings,
    share_at_least,
    summarise,
    summary_lines,
    truth_curve,
)
from tests.helpers.cases.report_cases import EMPTY, MARKED, PAIRED, SINGLE, TRUTH

RATES = {"mapped": 80.0, "confident": 68.0, "errors": 0.5, "split": 2.0}
BREADTH = {"breadth_1": 75.0, "breadth_10": 0.0, "breadth_20": 0.0, "breadth_30": 0.0}


def test_a_sample():
    single = {"reads": 1250, **RATES, "depth": 3.0, **BREADTH}
    assert summarise(SINGLE) == single
    paired = single | {"paired": 72.0, "insert_size": 310 + 125 / 30}
    assert summarise(PAIRED) == paired
    assert summarise(MARKED, TRUTH) == paired | {"duplicates": 2.0, "correct": 96.0}


def test_a_sample_without_reads():
    truth = {**TRUTH, "correct": [0] * 61, "incorrect": [0] * 61, "unmapped": 0}
    assert summarise(EMPTY, truth) == {"reads": 0, **dict.fromkeys(RATES, 0.0), "correct": 0.0}


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


def test_warnings():
    """Without one if a fifth of the reads is mapped."""
    samples = {
        name: {"reads": reads, "mapped": mapped}
        for name, reads, mapped in (("few", 11_786, 154), ("fifth", 10, 2), ("none", 0, 0))
    }
    assert mapping_warnings(samples) == [
        "few: only 154 of 11,786 reads (1.3 %) are mapped: check that the reads are from this "
        "reference.",
        "none: there are no reads.",
    ]


def test_depths():
    assert depth_curve(PAIRED) == {0: 100.0, 1: 75.0, 2: 75.0, 3: 50.0, 4: 25.0}
    assert depth_curve({"depths": []}) == {}
    many = depth_curve({"depths": np.concatenate([np.arange(10_000), [10**6]])})
    assert list(many)[:2] == [0, 33]
    assert len(many) < 320
    assert list(many)[-1] < 10_000
    assert depth_curve({"depths": [], "breadth": np.array([99.0, 50, 0.05])}) == {0: 99.0, 1: 50.0}


def test_insert_sizes():
    """The last bin would look like a peak, but has a part in the quartiles."""
    assert insert_size_curve(PAIRED) == {
        295: 0.0, 305: 22.2222, 315: 66.6667, 325: 8.8889, 335: 0.0,
    }  # fmt: skip
    assert insert_size_curve(SINGLE) == {}
    assert insert_size_curve({"reads": 5}) == {}
    # 100 pairs of 300 to 310 bases, 300 of 310 to 320, 40 of 320 to 330, 10 longer ones.
    assert insert_quartiles(PAIRED) == (310 + 12.5 / 30, 310 + 125 / 30, 310 + 237.5 / 30)
    assert insert_quartiles(SINGLE) is None


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
