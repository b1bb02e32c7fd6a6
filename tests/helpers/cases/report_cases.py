"""Invented counts of samples, for tests of reports."""

from bwarp.records.statistics import INSERT_BINS, STAGES, empty_statistics

QUALITIES = [100, *[0] * 28, 50, *[0] * 30, 850]

PAIRED = {
    "reads": 1250,
    "mapped": 1000,
    "paired": 1250,
    "properly_paired": 900,
    "both_mapped": 950,
    "duplicates": None,
    "unmapped": 250,
    "bases": 125_000,
    "split_reads": 25,
    "supplementary": 30,
    "aligned_bases": 99_000,
    "inserted_bases": 1_000,
    "edits": 500,
    "reference_bases": 33_000,
    "depths": [0, 2, 3, 4],
    "mapping_qualities": QUALITIES,
    "insert_sizes": [0] * 30 + [100, 300, 40] + [0] * (INSERT_BINS - 34) + [10],
    "stages": dict(zip(STAGES, (1250, 6250, 9000, 5500, 5000, 400, 1000, 850), strict=True)),
}

SINGLE = PAIRED | {"paired": 0, "properly_paired": 0, "insert_sizes": [0] * INSERT_BINS}

MARKED = PAIRED | {"duplicates": 25}

EMPTY = empty_statistics()

#: 960 correct, 30 incorrect (10 of them with quality 30), 10 unmapped, and 5 random ones.
TRUTH = {
    "correct": [90, *[0] * 29, 70, *[0] * 29, 800],
    "incorrect": [20, *[0] * 29, 10, *[0] * 30],
    "random": [5, *[0] * 60],
    "unmapped": 10,
    "unmapped_random": 45,
}
