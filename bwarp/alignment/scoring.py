"""Scoring schemes, free ends of alignments, and bounds of scores.

A scoring scheme is a matrix over a small alphabet of codes, and the costs of gaps:

    a gap of length n costs  gap_open + n * gap_extend         (both >= 0; linear: gap_open = 0)

The query runs down the rows of the matrix of cells, the reference along its columns; H(i, j) is the
best score of i query residues against j reference residues:

                     reference   j = 0 .. n
                   .---------------------------.     D  deletion: reference residues without query
         query     | H(i-1,j-1)    I v         |     I  insertion: query residues without reference
         i = 0 .. m|            \\  H(i-1,j)    |
                   |   D >  H(i,j-1) -> H(i,j) |
                   '---------------------------'

    D(i,j) = max(H(i,j-1) - gap_open, D(i,j-1)) - gap_extend
    I(i,j) = max(H(i-1,j) - gap_open, I(i-1,j)) - gap_extend
    H(i,j) = max(H(i-1,j-1) + matrix[query i, reference j], D(i,j), I(i,j))    and 0 where local
"""

from dataclasses import dataclass, field

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.sequence import AMBIGUOUS, CODE_OF_BYTE, LETTERS

#: The codes of protein sequences.
AMINO_ACIDS = b"ARNDCQEGHILKMFPSTWYVBZX*J"

#: Codes are below this; the engines use the next one for padding.
MOST_CODES = 27

#: The maximum absolute value of a matrix entry and of a gap cost.
MOST_SCORE = 10_000

#: The same for matrices other than match and mismatch, whose tables are int8.
MATRIX_SCORE = 127

#: The maximum absolute score of any cell, so that sums of two never overflow int32.
SCORE_BOUND = 2**29


@dataclass(frozen=True)
class Mode:
    """The ends at which residues may stay unaligned at no cost.

    Attributes
    ----------
    local : bool
        Whether any stretch of both sequences may be aligned; the four others are then ignored.
    query_start, query_end, reference_start, reference_end : bool
        Whether residues of that sequence before (after) the alignment are free.
    """

    local: bool = False
    query_start: bool = False
    query_end: bool = False
    reference_start: bool = False
    reference_end: bool = False


GLOBAL = Mode()
LOCAL = Mode(local=True)
SEMIGLOBAL = Mode(query_start=True, query_end=True, reference_start=True, reference_end=True)
#: The whole query within the reference, like a read in a window of a genome.
FITTING = Mode(reference_start=True, reference_end=True)
MODES = {"global": GLOBAL, "local": LOCAL, "semiglobal": SEMIGLOBAL, "fitting": FITTING}


@dataclass(frozen=True, eq=False)
class Scoring:
    """A scoring scheme over the codes of an alphabet.

    Attributes
    ----------
    letters : bytes
        The letter of each code, for output.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of each input byte, 255 if it has none.
    matrix : ndarray, shape=(k, k), dtype=int16
        ``matrix[query code, reference code]``.
    gap_open, gap_extend : int
        A gap of length n costs ``gap_open + n * gap_extend``.
    ambiguous : int
        The code that never counts as equal in CIGAR and NM, or -1 for none.
    """

    letters: bytes
    code_of_byte: np.ndarray
    matrix: np.ndarray
    gap_open: int
    gap_extend: int
    ambiguous: int = -1
    match_mismatch: tuple[int, int] | None = field(init=False, default=None)
    """(match, mismatch) if the matrix has only these two, for which engines are faster."""

    def __post_init__(self):
        size = len(self.letters)
        if self.matrix.shape != (size, size) or not 1 <= size <= MOST_CODES:
            raise ValueError(f"matrix of {self.matrix.shape} for {size} letters")
        for name, cost in (("gap-open", self.gap_open), ("gap-extend", self.gap_extend)):
            if cost < 0:
                raise UsageError(f"{name} is {cost}: gap costs must not be negative: use {-cost}")
            if cost > MOST_SCORE:
                raise UsageError(
                    f"{name} is {cost}: the maximum of costs and scores is {MOST_SCORE}"
                )
        largest = int(np.abs(self.matrix.astype(np.int64)).max())
        if largest > MOST_SCORE:
            raise UsageError(
                f"the matrix has a score of {largest}: the maximum of costs and scores is "
                f"{MOST_SCORE}"
            )
        two_scores = _two_scores(self.matrix, self.ambiguous)
        if two_scores is None and largest > MATRIX_SCORE:
            raise UsageError(
                f"the matrix has a score of {largest}: the maximum in a matrix is {MATRIX_SCORE}"
            )
        object.__setattr__(self, "match_mismatch", two_scores)


def _two_scores(matrix: np.ndarray, ambiguous: int) -> tuple[int, int] | None:
    plain = np.arange(len(matrix)) != ambiguous
    same = np.eye(len(matrix), dtype=bool) & plain
    # numpy.unique would import numpy.ma, which takes 20 ms.
    match, mismatch = set(matrix[same].tolist()), set(matrix[~same].tolist())
    if len(match) == 1 and len(mismatch) == 1:
        return match.pop(), mismatch.pop()
    return None


def nucleotide_scoring(match: int, mismatch: int, gap_open: int, gap_extend: int) -> Scoring:
    """Match and mismatch over A C G T (U); an ambiguous base mismatches all, itself included.

    Parameters
    ----------
    match, mismatch : int
        Scores, for example 1 and -4; match >= 0 >= mismatch, not both 0.
    gap_open, gap_extend : int
        Costs, >= 0.
    """
    if match < 0:
        raise UsageError(f"match is {match}: the score of a match must be 0 or more")
    if mismatch > 0:
        raise UsageError(
            f"mismatch is {mismatch}: the score of a mismatch must be 0 or less: use {-mismatch}"
        )
    if mismatch == match:
        raise UsageError("match and mismatch are both 0: all alignments would have the same score")
    if max(match, -mismatch) > MOST_SCORE:
        raise UsageError(
            f"match {match}, mismatch {mismatch}: scores must be from -{MOST_SCORE} to {MOST_SCORE}"
        )
    matrix = np.full((len(LETTERS), len(LETTERS)), mismatch, np.int16)
    np.fill_diagonal(matrix[:AMBIGUOUS, :AMBIGUOUS], match)
    return Scoring(LETTERS, CODE_OF_BYTE, matrix, gap_open, gap_extend, AMBIGUOUS)


def matrix_scoring(name: str, gap_open: int, gap_extend: int) -> Scoring:
    """Return a published matrix by name, for proteins or nucleotides (NUC.4.4, also called
    EDNAFULL).

    All protein matrices are over `AMINO_ACIDS`, so that encoded sequences suit all of them. Letters
    that a matrix lacks are treated as NCBI treats them: selenocysteine U is scored as C and
    pyrrolysine O as X; J (leucine or isoleucine) has the mean of I and L, rounded up; B and Z are
    X; and X and * have the lowest score of the matrix.
    """
    letters, matrix = _named_matrix(name)
    code_of_byte = np.full(256, 255, np.uint8)
    for code, letter in enumerate(letters):
        code_of_byte[letter] = code
    for letter, stand_in in (b"UC", b"OX") if letters == AMINO_ACIDS else (b"UT",):
        code_of_byte[letter] = code_of_byte[stand_in]
    for letter in range(ord("A"), ord("Z") + 1):
        code_of_byte[letter + 32] = code_of_byte[letter]
    code_of_byte.setflags(write=False)
    return Scoring(letters, code_of_byte, matrix, gap_open, gap_extend)


def _named_matrix(name: str) -> tuple[bytes, np.ndarray]:
    """Return the letters and scores, int16[k, k], of a substitution matrix of Biopython."""
    from Bio.Align import substitution_matrices

    names = substitution_matrices.load()
    by_capitals = {known.upper(): known for known in names} | {"EDNAFULL": "NUC.4.4"}
    if name.upper() not in by_capitals:
        raise UsageError(f"unknown matrix {name!r}: use one of {', '.join(names)}")
    table = substitution_matrices.load(by_capitals[name.upper()])
    values = np.asarray(table)
    if not isinstance(table.alphabet, str) or not np.array_equal(values, np.rint(values)):
        raise UsageError(
            f"matrix {name} does not hold integer scores of single letters: use another, such as "
            "BLOSUM62"
        )
    letters, matrix = table.alphabet.encode(), values.astype(np.int16)
    if not set(letters) - set(b"ACGTURYSWKMBDHVN*"):
        return letters, matrix
    full = np.full((len(AMINO_ACIDS), len(AMINO_ACIDS)), matrix.min(), np.int16)
    # The source row of each letter; -1 leaves the lowest score.
    own = [letters.find(letter) for letter in AMINO_ACIDS]
    for letter in b"BZ":
        if letter not in letters:
            own[AMINO_ACIDS.index(letter)] = letters.find(b"X")
    known = np.array(own) >= 0
    rows = np.array(own)[known]
    full[np.ix_(known, known)] = matrix[np.ix_(rows, rows)]
    if b"J" not in letters:
        j, k = AMINO_ACIDS.index(b"J"), AMINO_ACIDS.index(b"K")
        two = [AMINO_ACIDS.index(b"I"), AMINO_ACIDS.index(b"L")]
        full[j] = -(-full[two].sum(axis=0) // 2)
        full[:, j] = -(-full[:, two].sum(axis=1) // 2)
        if by_capitals[name.upper()] == "BLOSUM62":
            # NCBI's own row, BLASTP in Biopython, rounds K against J the other way.
            full[k, j] = full[j, k] = substitution_matrices.load("BLASTP")["J", "K"]
    return AMINO_ACIDS, full


def highest_score(scoring: Scoring, query_length: int, reference_length: int) -> int:
    """Return an upper bound of all cells: the best entry per residue of the shorter sequence."""
    return max(int(scoring.matrix.max()), 0) * min(query_length, reference_length)


def lowest_score(scoring: Scoring, mode: Mode, query_length: int, reference_length: int) -> int:
    """Return a lower bound of H, D and I in all cells.

    Any cell can be reached by one deletion and one insertion, and the maximum over all ways is no
    worse; D and I are at most one more opened gap below.
    """
    one_more = scoring.gap_open + scoring.gap_extend
    if mode.local:
        return -one_more
    longest_gaps = query_length + reference_length
    return -(2 * scoring.gap_open + longest_gaps * scoring.gap_extend) - one_more


def element_type(
    scoring: Scoring, mode: Mode, query_length: int, reference_length: int
) -> type[np.signedinteger]:
    """Return the narrowest of int8, int16 and int32 that holds every value of every cell.

    A matrix entry is added before the maximum is taken, hence the last two terms.
    """
    high = highest_score(scoring, query_length, reference_length)
    low = lowest_score(scoring, mode, query_length, reference_length)
    high += max(int(scoring.matrix.max()), 0)
    low += min(int(scoring.matrix.min()), 0)
    for dtype in (np.int8, np.int16):
        if np.iinfo(dtype).min < low and high < np.iinfo(dtype).max:
            return dtype
    if max(high, -low) > SCORE_BOUND:
        raise InputError(
            f"{query_length} against {counted(reference_length, 'residue')} can score {high} or "
            f"{low}, beyond the limit of {SCORE_BOUND}: use smaller scores and gap costs, or "
            "shorter sequences"
        )
    return np.int32
