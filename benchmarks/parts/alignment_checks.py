"""Checks of every GPU kernel for alignments against the CPU engine."""

from pathlib import Path

import numpy as np
from frame.simulated import make_proteins

from bwarp.alignment.gatk_cpu import GATK_PARAMETERS, OVERHANGS
from bwarp.alignment.scoring import (
    FITTING,
    GLOBAL,
    LOCAL,
    SEMIGLOBAL,
    matrix_scoring,
    nucleotide_scoring,
)
from bwarp.database_search.database import sorted_database
from parts.alignment_pairs import BASES, mixed_pairs, random_pairs

__all__ = [
    "MODES",
    "check_cases",
    "check_gatk_case",
    "check_pairs_case",
    "check_search",
    "expected_answers",
    "gatk_cases",
]

MODES = {"local": LOCAL, "fitting": FITTING, "semiglobal": SEMIGLOBAL, "global": GLOBAL}


def check_cases():
    """Return small batches that use every kernel: name, pairs, scoring, mode."""
    bwa, wide = nucleotide_scoring(1, -4, 6, 1), nucleotide_scoring(200, -150, 249, 11)
    linear, other = nucleotide_scoring(2, -3, 0, 2), nucleotide_scoring(10, -15, 25, 5)
    short = mixed_pairs(600, (1, 150), (1, 300), 1)
    long = mixed_pairs(12, (300, 900), (300, 1200), 2)
    many = random_pairs(20_000, 150, 200, 3)
    for mode in MODES:
        yield f"short bwa {mode}", short, bwa, MODES[mode]
        yield f"short linear {mode}", short, linear, MODES[mode]
        yield f"long bwa {mode}", long, bwa, MODES[mode]
        yield f"many other {mode}", many, other, MODES[mode]
    yield "short wide local", short, wide, LOCAL
    yield "short wide semiglobal", short, wide, SEMIGLOBAL
    blosum = matrix_scoring("BLOSUM62", 11, 1)
    yield "protein local", mixed_pairs(200, (1, 150), (1, 300), 4), blosum, LOCAL


def gatk_cases():
    for number, (name, parameters) in enumerate(GATK_PARAMETERS.items()):
        for overhang in OVERHANGS:
            yield (
                f"gatk {name} {overhang}",
                mixed_pairs(400, (1, 120), (1, 350), 10 + number, BASES),
                parameters,
                overhang,
            )


def search_case():
    database = make_proteins(60_000, 5)
    rng = np.random.default_rng(6)
    queries = [rng.integers(0, 20, n).astype(np.uint8) for n in (1, 60, 144, 375, 1100)]
    database += [np.tile(queries[4], 7), queries[3], queries[4]]
    names = [str(i) for i in range(len(database))]
    return queries, sorted_database(database, names), matrix_scoring("BLOSUM62", 11, 1)


def expected_answers(path):
    """Return the CPU engine's results for all checks, from the file if it exists."""
    if path and Path(path).exists():
        return dict(np.load(path))
    from bwarp.alignment.gatk_cpu import gatk_alignments
    from bwarp.alignment.pair_ends_cpu import pair_alignments
    from bwarp.database_search.search_cpu import search_scores

    answers = {}
    for name, pairs, scoring, mode in check_cases():
        for field, array in pair_alignments(pairs, scoring, mode, 2)._asdict().items():
            answers[f"{name}/{field}"] = array
    for name, pairs, parameters, overhang in gatk_cases():
        for field, array in gatk_alignments(pairs, parameters, overhang, 2)._asdict().items():
            answers[f"{name}/{field}"] = array
    queries, database, scoring = search_case()
    answers["search"] = np.array(list(search_scores(queries, database, scoring, 2)))
    if path:
        np.savez_compressed(path, **answers)
    return answers


def comparison(expected, name, answer):
    fields = [
        field
        for field, array in answer._asdict().items()
        if not np.array_equal(array, expected[f"{name}/{field}"])
    ]
    return [{"check": name, "equal": not fields, **({"differ": fields} if fields else {})}]


def check_pairs_case(expected, name, pairs, scoring, mode):
    from bwarp.alignment.pair_ends_cuda import pair_alignments, pair_scores

    scores = pair_scores(pairs, scoring, mode)
    alignments = pair_alignments(pairs, scoring, mode)
    rows = comparison(expected, name, alignments)
    if not rows[0]["equal"]:
        starts = alignments.query_starts != expected[f"{name}/query_starts"]
        rows[0]["first"] = np.flatnonzero(starts)[:10].tolist()
    rows[0]["scores_equal"] = bool(np.array_equal(scores, expected[f"{name}/scores"]))
    return rows


def check_gatk_case(expected, engine, name, pairs, parameters, overhang):
    return comparison(expected, name, engine.gatk_alignments(pairs, parameters, overhang))


def check_search(expected, engine, name):
    queries, database, scoring = search_case()
    scores = np.array(list(engine.search_scores(queries, database, scoring)))
    return [{"check": name, "equal": bool(np.array_equal(scores, expected["search"]))}]
