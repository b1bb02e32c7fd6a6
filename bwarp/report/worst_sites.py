"""Select the worst sites of every guide from the table of `bwarp offtargets`, in one pass.

The table may have millions of lines, so the numbers of a block of lines are read as arrays, and
only lines that may be shown, and those of alternative sites, become text.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks

#: Columns of every table, in their order.
_FIRST = ("guide", "guide_aligned", "site_aligned", "pam", "contig", "start", "end", "strand")

#: Columns that count edits.
_EDITS = ("mismatches", "dna_bulge", "rna_bulge")

_TAB, _FEED, _ZERO = ord("\t"), ord("\n"), ord("0")
_BLOCK_BYTES = 1 << 20

#: A score is a digit, a point and six digits.
_SCORE_BYTES = 8
_SCORE_DIGITS = np.array([0, 2, 3, 4, 5, 6, 7])
_WHOLE_SCORE = 10**6


class GuideSites:
    """The sites of a guide.

    Attributes
    ----------
    n_sites, n_alternative : int
        All sites in the table, and those of variants or other genomes.
    lost : list of list of str
        The first rows of sites without mismatches and bulges that variants remove or genomes lack.
    n_lost : int
    added : Counter
        By population, with "" for all: the sum over alternative sites of their frequency times the
        CFD score that they add.
    """

    def __init__(self) -> None:
        self.n_sites = self.n_alternative = self.n_lost = 0
        self.lost: list[list[str]] = []
        self.added: Counter[str] = Counter()
        self._worst: dict[int, list[tuple[int, list[str]]]] = {}

    def add_lost(self, cells: list[str], most: int) -> None:
        """Count a site that variants remove, and keep the first rows."""
        self.n_lost += 1
        if len(self.lost) < most:
            self.lost.append(cells)

    def add(self, group: int, sites: list[tuple[int, list[str]]], most: int) -> None:
        """Add rows of a group with their ranks, and keep the first by rank."""
        kept = self._worst.get(group, []) + sites
        self._worst[group] = sorted(kept, key=lambda site: site[0])[:most]

    @property
    def worst(self) -> list[list[str]]:
        """Rows by score, then those without a score by edits."""
        sites = [site for group in sorted(self._worst) for site in self._worst[group]]
        return [cells for _, cells in sorted(sites, key=lambda site: site[0])]


def select_worst(
    path: str | os.PathLike, names: Sequence[str], most: int
) -> tuple[list[str], list[GuideSites]]:
    """Return the columns of a table of sites, and for each guide its sites.

    Four groups of a guide have up to `most` rows each: sites of the reference and alternative
    sites, with a CFD score (highest first) and without one (fewest edits first).

    Raises
    ------
    InputError
        If the file is not a table of sites of these guides.
    """
    blocks = _whole_lines(path)
    columns = next(blocks, b"").decode("utf-8", "replace").rstrip("\n").split("\t")
    if columns[: len(_FIRST)] != list(_FIRST) or not {*_EDITS, "cfd"} <= set(columns):
        raise InputError(
            f"{path}: not a table of sites: give a file that bwarp offtargets wrote as OUT.tsv"
        )
    numbers = {name: number for number, name in enumerate(names)}
    found = [GuideSites() for _ in names]
    n_lines = 1
    for text in blocks:
        lines = _Lines(path, text, columns, n_lines)
        _add_lines(lines, lines.guides(numbers), found, most)
        n_lines += lines.count
    return columns, found


def _whole_lines(path: str | os.PathLike) -> Iterator[bytes]:
    """Yield the first line, and then the others in blocks."""
    rest = b""
    is_first = True
    for block in read_blocks(path, _BLOCK_BYTES):
        rest += block
        if is_first and b"\n" in rest:
            is_first = False
            first, _, rest = rest.partition(b"\n")
            yield first + b"\n"
        if not is_first and (end := rest.rfind(b"\n") + 1):
            yield rest[:end]
            rest = rest[end:]
    if rest:
        raise InputError(f"{path}: the last line is not complete: write the table again")


class _Lines:
    """Lines of a table, and where their cells end."""

    def __init__(self, path, text: bytes, columns: list[str], before: int):
        self._path, self._text, self._before = path, text, before
        self._column = {name: number for number, name in enumerate(columns)}
        self._data = np.frombuffer(text, np.uint8)
        feeds = np.flatnonzero(self._data == _FEED)
        ends = np.flatnonzero((self._data == _TAB) | (self._data == _FEED))
        self.count = feeds.size
        counts = np.diff(np.searchsorted(ends, feeds), prepend=-1)
        self._check(counts == len(columns), f"columns other than the {len(columns)} of the header")
        self._ends = ends.reshape(self.count, len(columns))
        self._firsts = np.concatenate([[0], feeds[:-1] + 1])

    def has(self, column: str) -> bool:
        return column in self._column

    def _check(self, good: np.ndarray, what: str) -> None:
        if not good.all():
            raise self.error(int(np.argmin(good)), what)

    def error(self, row: int, what: str) -> InputError:
        return InputError(
            f"{self._path}, line {self._before + row + 1}: not a row of a table of sites ({what}): "
            "give a file that bwarp offtargets wrote as OUT.tsv"
        )

    def _cells(self, column: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the starts and lengths of the cells of a column."""
        number = self._column[column]
        starts = self._ends[:, number - 1] + 1 if number else self._firsts
        return starts, self._ends[:, number] - starts

    def equal(self, column: str, text: bytes) -> np.ndarray:
        """Return which cells of a column have this text; none if there is no such column."""
        found = np.zeros(self.count, bool)
        if column in self._column:
            starts, lengths = self._cells(column)
            rows = np.flatnonzero(lengths == len(text))
            letters = self._data[starts[rows, None] + np.arange(len(text))]
            found[rows] = (letters == np.frombuffer(text, np.uint8)).all(axis=1)
        return found

    def digits(self, column: str) -> np.ndarray:
        """Return numbers of one digit."""
        starts, lengths = self._cells(column)
        values = self._data[starts].astype(np.int64) - _ZERO
        good = (lengths == 1) & (values >= 0) & (values <= 9)
        self._check(good, f"no digit in the column {column}")
        return values

    def scores(self, column: str) -> np.ndarray:
        """Return scores in millionths; -1 for empty cells."""
        starts, lengths = self._cells(column)
        rows = np.flatnonzero(lengths == _SCORE_BYTES)
        digits = self._data[starts[rows, None] + _SCORE_DIGITS].astype(np.int64) - _ZERO
        values = np.full(self.count, -1)
        values[rows] = digits @ 10 ** np.arange(6, -1, -1)
        good = (lengths == 0) | ((values >= 0) & (values <= _WHOLE_SCORE))
        self._check(good, f"no score in the column {column}")
        return values

    def guides(self, numbers: dict[str, int]) -> np.ndarray:
        """Return the number of the guide of every line."""
        starts, lengths = self._cells("guide")
        # Lines of a guide follow one another: only where names change are they read as text.
        same = lengths[1:] == lengths[:-1]
        for at in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(same & (lengths[1:] > at))
            same[rows] = self._data[starts[rows] + at] == self._data[starts[rows + 1] + at]
        changes = np.flatnonzero(np.concatenate([[True], ~same]))
        found = []
        for row in changes.tolist():
            name = self._text[starts[row] : starts[row] + lengths[row]].decode("utf-8", "replace")
            if name not in numbers:
                raise InputError(
                    f"{self._path}, line {self._before + row + 1}: guide {name} is not in the "
                    "table of guides: give the two tables of one run"
                )
            found.append(numbers[name])
        return np.repeat(found, np.diff(changes, append=self.count))

    def cells(self, row: int) -> list[str]:
        line = self._text[self._firsts[row] : self._ends[row, -1]]
        return line.decode("utf-8", "replace").split("\t")

    def named_cells(self, row: int) -> dict[str, str]:
        return dict(zip(self._column, self.cells(row), strict=True))


def _add_lines(lines: _Lines, guides: np.ndarray, found: list[GuideSites], most: int) -> None:
    edits = sum(lines.digits(column) for column in _EDITS)
    scores = lines.scores("cfd")
    is_alternative = lines.equal("origin", b"alternative")
    # Further alignments of a site are not further sites.
    is_site = lines.equal("alignment", b"1") if lines.has("alignment") else scores >= -1
    n_sites = np.bincount(guides[is_site], minlength=len(found))
    n_alternative = np.bincount(guides[is_site & is_alternative], minlength=len(found))
    for guide in np.flatnonzero(n_sites).tolist():
        found[guide].n_sites += int(n_sites[guide])
        found[guide].n_alternative += int(n_alternative[guide])
    for row in np.flatnonzero(is_site & is_alternative & (scores > 0)).tolist():
        try:
            found[guides[row]].added.update(_added_scores(lines.named_cells(row)))
        except (KeyError, ValueError):
            raise lines.error(row, "no score or frequency of an alternative site") from None
    for row in np.flatnonzero(is_site & (edits == 0) & lines.equal("effect", b"loss")).tolist():
        if not is_alternative[row]:
            found[guides[row]].add_lost(lines.cells(row), most)
    ranks = np.where(scores >= 0, _WHOLE_SCORE - scores, _WHOLE_SCORE + 1) * 32 + edits
    groups = (guides * 2 + (scores < 0)) * 2 + is_alternative
    rows = np.flatnonzero(is_site)
    rows = rows[np.argsort((groups << 32 | ranks)[rows], kind="stable")]
    firsts = np.flatnonzero(np.diff(groups[rows], prepend=-1))
    stops = np.append(firsts[1:], rows.size)[: firsts.size]
    for start, stop in zip(firsts.tolist(), stops.tolist(), strict=True):
        chosen = rows[start : min(stop, start + most)].tolist()
        guide, group = divmod(int(groups[chosen[0]]), 4)
        found[guide].add(group, [(int(ranks[row]), lines.cells(row)) for row in chosen], most)


def _added_scores(site: dict[str, str]) -> dict[str, float]:
    """Return the mean CFD score that an alternative site adds in all and in each population."""
    added = float(site["cfd"])
    # Without its PAM, the reference has no site here.
    if site["pam_change"] != "made" and site["cfd_change"]:
        added = max(float(site["cfd_change"]), 0.0)
    shares = _frequencies(site.get("populations", ""))
    if site["frequency"]:
        shares[""] = float(site["frequency"])
    return {name: share * added for name, share in shares.items()}


def _frequencies(populations: str) -> dict[str, float]:
    """Parse a cell of the column `populations`, such as AFR=0.25;EUR=0."""
    pairs = (item.rpartition("=") for item in populations.split(";") if item)
    return {name: float(share) for name, _, share in pairs}
