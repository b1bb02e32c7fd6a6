"""Messages about the counts at the end of a run, and sums of several runs."""

import json

import numpy as np

from bwarp.records.statistics import (
    add_counts,
    empty_statistics,
    merged_statistics,
    statistics_sentence,
    statistics_text,
)

COUNTS = empty_statistics() | {"reads": 3000, "mapped": 2900}


def test_the_sentence_mentions_pairs_and_duplicates_if_possible():
    assert statistics_sentence(COUNTS) == "3,000 reads, 2,900 mapped"
    pairs = COUNTS | {"paired": 3000}
    assert statistics_sentence(pairs) == "3,000 reads, 2,900 mapped, 0 properly paired"
    marked = pairs | {"properly_paired": 2800, "duplicates": 0}
    assert statistics_sentence(marked) == (
        "3,000 reads, 2,900 mapped, 2,800 properly paired, 0 duplicates"
    )
    assert statistics_sentence(COUNTS | {"duplicates": 1200}).endswith("mapped, 1,200 duplicates")


def test_duplicates_of_units():
    marked, other = COUNTS | {"duplicates": 5}, COUNTS | {"duplicates": 7}
    # There are more duplicates across all units than within single units.
    assert merged_statistics({"1": marked, "2": other}, 20)["duplicates"] == 20
    assert merged_statistics({"1": marked, "2": other}, None)["duplicates"] == 12
    assert merged_statistics({"1": marked, "2": COUNTS}, None)["duplicates"] is None


def test_counts_of_chunks_add_up_to_those_of_their_run():
    chunk = empty_statistics() | {"reads": 5, "insert_size": {"mean": 250.5}}
    chunk["mapping_qualities"] = [1] * 61
    chunk["reference_bases"] = 200
    chunk["stages"] = dict.fromkeys(chunk["stages"], 7)
    run = empty_statistics()
    for counts in (chunk, chunk | {"insert_size": None}):
        counts["depths"] = np.array([1, 2])
        add_counts(run, counts)
    assert run.pop("depths").tolist() == [2, 4]
    del chunk["depths"]
    assert run == chunk | {
        "reads": 10,
        "mapping_qualities": [2] * 61,
        "stages": dict.fromkeys(chunk["stages"], 14),
    }
    assert chunk["mapping_qualities"] == [1] * 61


def test_depths_of_units_and_the_text():
    units = {
        name: COUNTS | {"depths": depths, "reference_bases": 30}
        for name, depths in (("1", [1, 2, 0]), ("2", np.array([0, 4, 7])))
    }
    merged = merged_statistics(units, None)
    text = statistics_text(merged)
    assert '"depths": [1, 6, 7]' in text
    parsed = json.loads(text)
    assert (parsed["reference_bases"], parsed["depths"]) == (30, [1, 6, 7])
    assert parsed["units"]["2"]["reference_bases"] == 30
    assert "depths" not in parsed["units"]["2"]
