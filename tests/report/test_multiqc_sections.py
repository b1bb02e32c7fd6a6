"""The sections of the MultiQC report: their content, and their captions."""

import json

from bwarp.report.multiqc_sections import mapping_sections
from tests.helpers.cases.report_cases import EMPTY, MARKED, PAIRED, SINGLE, TRUTH

BREADTH = {"breadth_1": 75.0, "breadth_10": 0.0, "breadth_20": 0.0, "breadth_30": 0.0}


def test_the_sections_of_two_samples():
    sections = mapping_sections({"a": PAIRED, "b": SINGLE}, {"a": TRUTH})
    assert list(sections) == ["general", "mapping_quality", "depth", "insert_size"]
    sections = json.loads(json.dumps(sections, allow_nan=False))
    assert sections["general"]["data"] == {
        "a": {
            "reads": 1250, "mapped": 80.0, "paired": 72.0, "confident": 68.0, "errors": 0.5,
            "split": 2.0, "depth": 3.0, **BREADTH, "insert_size": 310 + 125 / 30, "correct": 96.0,
        },
        "b": {
            "reads": 1250, "mapped": 80.0, "confident": 68.0, "errors": 0.5, "split": 2.0,
            "depth": 3.0, **BREADTH,
        },
    }  # fmt: skip
    assert sections["depth"]["data"]["b"]["4"] == 25.0
    assert set(sections["general"]["headers"]) == set(sections["general"]["data"]["a"])
    assert sections["mapping_quality"]["data"]["b"]["30"] == 85.0
    assert list(sections["insert_size"]["data"]) == ["a"]
    for name, section in sections.items():
        if name != "general":
            assert len(section["description"]) > 100
            assert section["pconfig"]["xlab"]
            assert section["pconfig"]["ylab"]


def test_samples_with_several_lanes_have_a_table_of_lanes():
    alone, several = (
        PAIRED | {"units": {"1": MARKED}},
        PAIRED | {"units": {"1": PAIRED, "2": MARKED}},
    )
    assert "units" not in mapping_sections({"a": alone}, {})
    section = mapping_sections({"a": alone, "b": several}, {})["units"]
    assert list(section["data"]) == ["a.1", "b.1", "b.2"]
    assert section["data"]["b.2"]["duplicates"] == 2.0
    assert "duplicates" not in section["data"]["b.1"]
    assert section["plot_type"] == "table"


def test_duplicates_are_shown_if_they_were_marked():
    general = mapping_sections({"a": MARKED}, {})["general"]
    assert general["data"]["a"]["duplicates"] == 2.0
    assert general["headers"]["duplicates"]["title"] == "Duplicates"


def test_a_sample_without_reads_breaks_nothing():
    sections = mapping_sections({"none": EMPTY}, {})
    assert list(sections) == ["general", "mapping_quality"]
