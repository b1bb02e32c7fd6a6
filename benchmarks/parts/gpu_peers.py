"""Commands of CUDASW++4, GASAL2 and WFA-GPU, and the numbers in their output."""

import re
from collections.abc import Iterable

__all__ = [
    "cudasw4",
    "cudasw4_gcups",
    "cudasw4_scores",
    "gasal2",
    "gasal2_scores",
    "gasal2_seconds",
    "wfa_gpu",
    "wfa_gpu_scores",
    "wfa_gpu_seconds",
]

#: Pairs that WFA-GPU holds on the GPU at once, as in its examples.
WFA_GPU_BATCH = 100_000


def cudasw4(queries: str, database: str, table: str, top: int, *more: str) -> list[str]:
    """Return the command that searches with BLOSUM62; a gap of n residues costs 10 + n."""
    search = ["cudasw4", "--query", queries, "--db", database, "--top", str(top)]
    return [*search, "--gop", "-11", "--gex", "-1", "--tsv", "--of", table, "--verbose", *more]


def cudasw4_scores(table: str) -> dict[str, list[int]]:
    """Return the scores of the hits of each query, best first, from its table."""
    scores: dict[str, list[int]] = {}
    for line in table.splitlines()[1:]:
        _, _, query, _, score, *_ = line.split("\t")
        scores.setdefault(query, []).append(int(score))
    return scores


def cudasw4_gcups(said: str) -> tuple[list[float], float]:
    """Return the GCUPS that it prints for each query, and those for all queries."""
    each = re.findall(r"Scan time: \S+ s, (\S+) GCUPS", said)
    (total,) = re.findall(r"Total time: \S+ s, (\S+) GCUPS", said)
    return [float(word) for word in each], float(total)


def gasal2(
    mode: str, costs: tuple[int, int, int, int], threads: int, files: Iterable[str], *more: str
) -> list[str]:
    """Return the command that aligns pairs with CIGARs.

    Parameters
    ----------
    costs : (int, int, int, int)
        The score of a match, and the costs of a mismatch, of a gap, and of each of its bases.
    files : (str, str)
        FASTA of queries and references, a line per sequence.
    """
    options = [
        word
        for letter, cost in zip("abqr", costs, strict=True)
        for word in (f"-{letter}", str(cost))
    ]
    return ["gasal2", "-y", mode, "-t", "-n", str(threads), *options, *more, *files]


def gasal2_scores(printed: str) -> dict[str, int]:
    """Return the score of each query, which it prints in the order in which batches finish."""
    rows = (dict(word.split("=", 1) for word in line.split("\t")) for line in printed.splitlines())
    return {row["query_name"]: int(row["score"]) for row in rows}


def gasal2_seconds(said: str) -> float:
    """Return its own time, from the first copy to the last, without reading files."""
    (milliseconds,) = re.findall(r"Total execution time \(in milliseconds\): (\S+)", said)
    return float(milliseconds) / 1e3


def wfa_gpu(costs: tuple[int, int, int, int], files: tuple[str, str], output: str) -> list[str]:
    """Return the command that aligns whole pairs with CIGARs; a match costs nothing."""
    _, *penalties = costs
    queries, references = files
    command = ["wfa.affine.gpu", "-Q", queries, "-T", references, "-b", str(WFA_GPU_BATCH)]
    return [*command, "-g", ",".join(map(str, penalties)), "-x", "-o", output]


def wfa_gpu_scores(output: str) -> list[int]:
    """Return the scores, from 0 down, in the order of the pairs."""
    return [int(line.split("\t")[0]) for line in output.splitlines()]


def wfa_gpu_seconds(said: str) -> float:
    """Return its own time, without reading and writing files."""
    (seconds,) = re.findall(r"Alignment computed\. Wall time: ([\d.]+)s", said)
    return float(seconds)
