"""What is said of the counts at the end of a run, and sums of several runs."""

from bwarp.mapping.output.statistics import (
    add_counts,
    empty_statistics,
    merged_statistics,
    statistics_sentence,
)

COUNTS = empty_statistics() | {"reads": 3000, "mapped": 2900}


def test_the_sentence_tells_of_pairs_and_duplicates_where_there_could_be_any():
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
    # Those found among all units are more than each unit's own.
    assert merged_statistics({"1": marked, "2": other}, 20)["duplicates"] == 20
    assert merged_statistics({"1": marked, "2": other}, None)["duplicates"] == 12
    assert merged_statistics({"1": marked, "2": COUNTS}, None)["duplicates"] is None


def test_counts_of_chunks_add_up_to_those_of_their_run():
    chunk = empty_statistics() | {"reads": 5, "insert_size": {"mean": 250.5}}
    chunk["mapping_qualities"] = [1] * 61
    chunk["stages"] = dict.fromkeys(chunk["stages"], 7)
    run = empty_statistics()
    for counts in (chunk, chunk | {"insert_size": None}):
        add_counts(run, counts)
    assert run == chunk | {
        "reads": 10,
        "mapping_qualities": [2] * 61,
        "stages": dict.fromkeys(chunk["stages"], 14),
    }
    assert chunk["mapping_qualities"] == [1] * 61
