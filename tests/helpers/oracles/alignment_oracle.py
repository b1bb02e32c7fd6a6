"""Alignments in the slow, obvious way: whole matrices in plain Python, by the rules of pairs.py."""

from dataclasses import dataclass

MINUS_INFINITY = -(10**9)


@dataclass(frozen=True)
class OracleAlignment:
    score: int
    query_start: int
    query_end: int
    reference_start: int
    reference_end: int
    edit_distance: int
    cigar: list


def matrices(query, reference, scoring, mode):
    """Return H, D and I as lists of rows."""
    m, n = len(query), len(reference)
    opening, extending = scoring.gap_open, scoring.gap_extend
    matrix = scoring.matrix.tolist()
    H = [[0] * (n + 1) for _ in range(m + 1)]
    D = [[MINUS_INFINITY] * (n + 1) for _ in range(m + 1)]
    I = [[MINUS_INFINITY] * (n + 1) for _ in range(m + 1)]  # noqa: E741
    for i in range(1, m + 1):
        if not (mode.local or mode.query_start):
            H[i][0] = I[i][0] = -opening - i * extending
    for j in range(1, n + 1):
        if not (mode.local or mode.reference_start):
            H[0][j] = D[0][j] = -opening - j * extending
    for i in range(1, m + 1):
        for j in range(1, n + 1):
            D[i][j] = max(H[i][j - 1] - opening, D[i][j - 1]) - extending
            I[i][j] = max(H[i - 1][j] - opening, I[i - 1][j]) - extending
            diagonal = H[i - 1][j - 1] + matrix[query[i - 1]][reference[j - 1]]
            H[i][j] = max(diagonal, D[i][j], I[i][j], 0 if mode.local else MINUS_INFINITY)
    return H, D, I


def end_cell(H, mode):
    """Return (score, reference end, query end) by rule 1."""
    m, n = len(H) - 1, len(H[0]) - 1
    if mode.local:
        cells = [(i, j) for i in range(m + 1) for j in range(n + 1)]
    else:
        cells = [(m, n)]
        if mode.reference_end:
            cells += [(m, j) for j in range(1, n + 1)]
        if mode.query_end:
            cells += [(i, n) for i in range(1, m + 1)]
    score, j, i = min((-H[i][j], j, i) for i, j in cells)
    return -score, j, i


def align(query, reference, scoring, mode):
    """Align two sequences of codes (lists of int) by the rules of pairs.py."""
    H, D, I = matrices(query, reference, scoring, mode)  # noqa: E741
    matrix = scoring.matrix.tolist()
    score, j, i = end_cell(H, mode)
    query_end, reference_end = i, j
    first_of_gap = scoring.gap_open + scoring.gap_extend
    operations, distance, state = [], 0, "H"
    while True:
        if state == "H":
            if (
                (mode.local and H[i][j] == 0)
                or (i == 0 and (mode.reference_start or j == 0))
                or (j == 0 and (mode.query_start or i == 0))
            ):
                break
            if (
                i > 0
                and j > 0
                and H[i][j] == H[i - 1][j - 1] + matrix[query[i - 1]][reference[j - 1]]
            ):
                i, j = i - 1, j - 1
                same = query[i] == reference[j] and query[i] != scoring.ambiguous
                operations.append("=" if same else "X")
                distance += not same
            elif j > 0 and H[i][j] == D[i][j]:
                state = "D"
            else:
                state = "I"
        elif state == "D":
            operations.append("D")
            distance += 1
            if D[i][j] == H[i][j - 1] - first_of_gap:
                state = "H"
            j -= 1
        else:
            operations.append("I")
            distance += 1
            if I[i][j] == H[i - 1][j] - first_of_gap:
                state = "H"
            i -= 1
    cigar = []
    for operation in reversed(operations):
        if cigar and cigar[-1][1] == operation:
            cigar[-1] = (cigar[-1][0] + 1, operation)
        else:
            cigar.append((1, operation))
    return OracleAlignment(score, i, query_end, j, reference_end, distance, cigar)


def replayed_score(query, reference, scoring, alignment):
    """Return the score and the ends of a CIGAR, and check that it is consistent."""
    i, j, score = alignment.query_start, alignment.reference_start, 0
    for length, operation in alignment.cigar:
        if operation in "=X":
            for _ in range(length):
                same = query[i] == reference[j] and query[i] != scoring.ambiguous
                assert same == (operation == "=")
                score += int(scoring.matrix[query[i], reference[j]])
                i, j = i + 1, j + 1
        else:
            score -= scoring.gap_open + length * scoring.gap_extend
            if operation == "D":
                j += length
            else:
                i += length
    return score, i, j
