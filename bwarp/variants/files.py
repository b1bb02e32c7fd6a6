"""Read the edits of VCF and BCF files, one stretch of a contig after another."""

import itertools
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pysam

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.line_scan import count_byte
from bwarp.reference import Reference
from bwarp.runtime.chunks import in_order
from bwarp.runtime.compiled_code import read_only
from bwarp.sequence import CODE_OF_BYTE
from bwarp.variants import lines
from bwarp.variants.edits import (
    LONGEST_EDIT,
    MOST_EDITS,
    Edits,
    in_order_of_edits,
    joined_edits,
    taken_edits,
    taken_pieces,
)
from bwarp.variants.populations import populations_of

#: More than the bases of any contig.
_END_OF_CONTIG = 1 << 40

#: Edits of a stretch, and bytes of its lines; it ends when either number is reached.
EDITS_AT_ONCE = 1 << 16
_TEXT_AT_ONCE = 256 << 20

_BLOCK_BYTES = 4 << 20

UNKNOWN_CONTIG = "the reference has no such contig"
WRONG_REF = "REF differs from the reference"
REPEATED = "searched as part of the same variant on an earlier line"
_REASONS = {
    lines.SYMBOLIC: "the ALT allele is not a sequence",
    lines.TOO_LONG: f"more than {LONGEST_EDIT} bases are removed or inserted",
    lines.WRONG_REF: WRONG_REF,
    lines.AMBIGUOUS: "REF, ALT or the reference has an ambiguous base",
    lines.BEYOND: "the position is beyond the ends of the contig",
}


class Unsearched(NamedTuple):
    """An allele that is not searched, and why."""

    contig: str
    position: str
    name: str
    ref: str
    alt: str
    reason: str


class Stretch(NamedTuple):
    """The edits of a stretch of a contig, and those next to it that its sites may have.

    Attributes
    ----------
    contig : str
    first, last : int
        The positions of the first and last line, in the genome.
    edits : Edits
    texts : list of bytes
        The first eight columns of each line.
    unsearched : list of Unsearched
    begin, end : int
        The positions of the stretch in the genome, without those of other stretches.
    """

    contig: str
    first: int
    last: int
    edits: Edits
    texts: list[bytes]
    unsearched: list[Unsearched]
    begin: int
    end: int

    def contains(self, positions: np.ndarray) -> np.ndarray:
        """Return whether positions are in the stretch itself."""
        return (positions >= self.begin) & (positions < self.end)

    def not_searched(self, edit: int, reason: str) -> Unsearched:
        """Describe an allele as not searched."""
        text = self.texts[self.edits.records[edit]].decode("utf-8", "replace")
        contig, position, name, ref, alts = text.split("\t")[:5]
        return Unsearched(
            contig, position, name, ref, alts.split(",")[self.edits.alleles[edit] - 1], reason
        )


class VariantFile:
    """A VCF or BCF file.

    Parameters
    ----------
    path : path-like
    reference : Reference
    threads : int
    populations_of_sample : dict, optional
        The populations to count, by sample.

    Attributes
    ----------
    samples : tuple of str
        Empty without genotypes.
    populations : Populations or None
        None without genotypes.
    """

    def __init__(
        self,
        path: str | os.PathLike,
        reference: Reference,
        threads: int = 1,
        populations_of_sample: dict[str, list[str]] | None = None,
    ):
        self._path, self._reference, self._threads = path, reference, threads
        self._pieces = _whole_lines(_text_blocks(path, threads))
        self.samples, self._n_header, self._rest = self._header()
        listed = populations_of_sample
        if listed is not None and not self.samples:
            raise InputError(f"{path}: no genotypes, which --populations requires")
        if listed is not None and not set(self.samples) & set(listed):
            raise InputError(
                f"{path}: no sample has a population: the first sample is {self.samples[0]}"
            )
        self.populations = None
        if self.samples:
            self.populations = populations_of(self.samples, listed or {})

    def stretches(self, reach: int, at_once: int = EDITS_AT_ONCE) -> Iterator[Stretch]:
        """Yield all variants, in stretches that cover their contigs.

        Parameters
        ----------
        reach : int
            The maximum number of bases of a site, with its PAM.
        at_once : int
            The minimum number of edits of a stretch, unless its lines are long or its contig ends.

        Raises
        ------
        InputError
            If the file is damaged, is not sorted, or does not belong to the reference.
        """
        waiting: list[Stretch] = []
        seen: list[str] = []
        n_searched = n_wrong = 0
        # Edits of the stretch before, next to the waiting ones.
        n_before = 0
        context = context_of(reach)
        parts = in_order(self._parsed, self._numbered(), self._threads)
        for part in itertools.chain.from_iterable(parts):
            if not seen or part.contig != seen[-1]:
                if waiting:
                    yield _in_order(_joined(waiting))
                waiting, n_before = [], 0
                if part.contig in seen:
                    raise self._unsorted(part.contig)
                seen.append(part.contig)
                self._check_prefix(seen)
            elif waiting and part.first < waiting[-1].last:
                raise self._unsorted(part.contig)
            n_searched += part.edits.count
            n_wrong += sum(one.reason == WRONG_REF for one in part.unsearched)
            waiting.append(part)
            if (
                sum(one.edits.count for one in waiting) >= n_before + at_once
                or sum(len(text) for one in waiting for text in one.texts) >= _TEXT_AT_ONCE
            ):
                whole = _joined(waiting)
                waiting = [whole]
                if whole.last - 2 * context > whole.begin:
                    done, rest = _cut(whole, context)
                    waiting, n_before = [rest], rest.edits.count
                    yield done
        if waiting:
            yield _in_order(_joined(waiting))
        if seen and not set(seen) & set(self._reference.names):
            raise InputError(
                f"{self._path}: no variant lies on a contig of the index: the first variant is on "
                f"{seen[0]}, but the first contig is {self._reference.names[0]}"
            )
        if n_wrong and not n_searched:
            raise InputError(
                f"{self._path}: REF of no variant agrees with the index: the variants belong to "
                "another genome"
            )

    def _header(self) -> tuple[tuple[str, ...], int, bytes]:
        """Read up to the column names; return samples, number of lines, and rest of the block."""
        n_lines = 0
        for piece in self._pieces:
            at = 0
            while at < len(piece):
                stop = piece.find(b"\n", at)
                stop = len(piece) if stop < 0 else stop
                line = piece[at:stop].rstrip(b"\r")
                at = stop + 1
                n_lines += 1
                if line.startswith(b"#CHROM\t"):
                    names = line.decode("utf-8", "replace").split("\t")[lines.FIXED :]
                    return tuple(names), n_lines, piece[at:]
                if line and not line.startswith(b"##"):
                    break
            else:
                continue
            break
        raise InputError(
            f"{self._path}: neither VCF nor BCF: there is no line that begins with #CHROM before "
            "the variants"
        )

    def _numbered(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the number of lines before, the number of the next lines, and these lines."""
        number = self._n_header
        for piece in itertools.chain([self._rest], self._pieces):
            if piece:
                data = np.frombuffer(piece, np.uint8)
                count = int(count_byte(data, 0, data.size, 10))
                yield number, count, piece
                number += count

    def _parsed(self, numbered: tuple[int, int, bytes]) -> list[Stretch]:
        """Parse whole lines; return the variants of each contig in turn."""
        before, count, text = numbered
        data = np.frombuffer(text, np.uint8)
        columns = np.empty((count + 1, lines.FIXED + 2), np.int64)
        n_lines, bad = lines.split_lines(data, columns)
        columns = columns[:n_lines]
        if bad >= 0:
            where = self._line(before, text, columns[bad])
            raise InputError(f"{where}: a variant must have at least 8 columns, separated by tabs")
        positions = lines.positions_of(data, columns, n_lines)
        if n_lines and positions.min() < 0:
            row = columns[int(np.argmin(positions))]
            raise InputError(f"{self._line(before, text, row)}: POS is not a whole number")
        edges = [*lines.contig_changes(data, columns, n_lines).tolist(), n_lines]
        found = []
        for first, last in itertools.pairwise(edges):
            if (np.diff(positions[first:last]) < 0).any():
                raise self._unsorted(_cell(text, columns[first], 0))
            found.append(
                self._of_contig(before, text, data, columns[first:last], positions[first:last])
            )
        return found

    def _of_contig(self, before, text, data, columns, positions) -> Stretch:
        name = _cell(text, columns[0], 0)
        reference = self._reference
        alleles = np.zeros((0, 7), np.int64)
        unsearched = []
        begin = 0
        if name in reference.names:
            contig = reference.names.index(name)
            begin, end = reference.contig_starts[contig : contig + 2].tolist()
            alleles = np.empty((lines.count_alleles(data, columns, len(columns)), 7), np.int64)
            genome = bases_of(reference)
            alleles = alleles[
                : lines.list_alleles(data, columns, positions, begin, end, genome, alleles)
            ]
            for row, allele, state in alleles[alleles[:, 6] != lines.SEARCHED][:, [0, 1, 6]]:
                cells = [_cell(text, columns[row], i) for i in range(5)]
                cells[4] = cells[4].split(",")[allele - 1]
                unsearched.append(Unsearched(*cells, _REASONS[int(state)]))
            alleles = alleles[alleles[:, 6] == lines.SEARCHED]
        else:
            for row in columns:
                cells = [_cell(text, row, i) for i in range(5)]
                unsearched.append(Unsearched(*cells, UNKNOWN_CONTIG))
        edits = self._edits(before, text, data, columns, alleles)
        rows = np.unique(alleles[:, 0])
        texts = [text[columns[row, 0] : columns[row, lines.FIXED - 1] - 1] for row in rows]
        first, last = (begin + positions[[0, -1]] - 1).tolist()
        return Stretch(name, first, last, edits, texts, unsearched, begin, begin + _END_OF_CONTIG)

    def _edits(self, before, text, data, columns, alleles) -> Edits:
        n_samples = len(self.samples)
        everyone = all_haplotypes(n_samples)
        n = len(alleles)
        genotypes = lines.Genotypes(
            np.zeros((n, everyone.size), np.uint64), np.zeros(n, np.uint8), np.zeros(n, np.int64),
            np.empty((n, everyone.size), np.uint64),
        )  # fmt: skip
        row, problem, n_present = lines.read_genotypes(
            data, columns, alleles, everyone, n_samples, genotypes
        )
        if problem:
            where = self._line(before, text, columns[row])
            if problem == lines.SAMPLE_COUNT:
                raise InputError(
                    f"{where}: there must be {counted(n_samples, 'genotype')}, as many as samples "
                    "in the header"
                )
            if problem == lines.PLOIDY:
                raise InputError(f"{where}: a genotype has more than 2 alleles")
            raise InputError(
                f"{where}: a genotype has characters other than allele numbers, dots, bars "
                "and slashes"
            )
        letters, bounds = taken_pieces(data, alleles[:, 4:6])
        return Edits(
            starts=alleles[:, 2].copy(),
            stops=alleles[:, 3].copy(),
            bases=CODE_OF_BYTE[letters],
            bounds=bounds,
            records=np.unique(alleles[:, 0], return_inverse=True)[1].astype(np.int64),
            alleles=alleles[:, 1].copy(),
            free=genotypes.kinds != lines.PHASED,
            carriers=genotypes.carriers,
            counts=np.where(
                genotypes.kinds == lines.NO_GENOTYPES,
                -1,
                np.bitwise_count(genotypes.carriers).sum(axis=1, dtype=np.int64),
            ),
            ploidies=genotypes.ploidies,
            present=genotypes.present[:n_present].copy(),
        )

    def _line(self, before: int, text: bytes, row: np.ndarray) -> str:
        """Name a line in an error."""
        return f"{self._path}, line {before + text.count(bytes([10]), 0, int(row[0])) + 1}"

    def _check_prefix(self, seen: list[str]) -> None:
        """Check that not only the prefix chr distinguishes the last contig from one of the index.

        If an earlier contig is in the index, names are as in the index.
        """
        contig, names = seen[-1], self._reference.names
        other = contig.removeprefix("chr") if contig.startswith("chr") else f"chr{contig}"
        if other in names and not set(seen) & set(names):
            raise InputError(
                f"{self._path}: the variants are on {contig}, but the index has {other}: use "
                f"bcftools annotate --rename-chrs FILE, where a line of FILE is: {contig} {other}"
            )

    def _unsorted(self, contig: str) -> InputError:
        return InputError(
            f"{self._path}: the variants of {contig} are not in order: sort the file with bcftools "
            "sort"
        )


def bases_of(reference: Reference) -> lines.Bases:
    """Return the arrays that compiled functions read the genome from."""
    starts = reference.segment_genome.astype(np.int64)
    return lines.Bases(reference.packed, starts, starts + np.diff(reference.segment_text) - 1)


def _cell(text: bytes, row: np.ndarray, column: int) -> str:
    return text[row[column] : row[column + 1] - 1].decode("utf-8", "replace")


def all_haplotypes(n_samples: int) -> np.ndarray:
    """Return a bit per haplotype, dtype uint64; without samples, one for any haplotype."""
    n_bits = max(2 * n_samples, 1)
    words = np.full(-(-n_bits // 64), ~np.uint64(0))
    if n_bits & 63:
        words[-1] = (1 << (n_bits & 63)) - 1
    return words


def context_of(reach: int) -> int:
    """Return how far from a position edits may be that are in windows with sites there.

    A window has bases of the reference on the left, and on the right bases and deletions.
    """
    return reach + MOST_EDITS * LONGEST_EDIT


def _in_order(stretch: Stretch) -> Stretch:
    """Return a stretch with its edits in order, the repeated ones as not searched."""
    edits, repeated = in_order_of_edits(stretch.edits)
    of_repeated = stretch._replace(edits=repeated)
    listed = [of_repeated.not_searched(row, REPEATED) for row in range(repeated.count)]
    return stretch._replace(edits=edits, unsearched=stretch.unsearched + listed)


def _joined(parts: list[Stretch]) -> Stretch:
    if len(parts) == 1:
        return parts[0]
    edits, n_texts = [], 0
    for part in parts:
        edits.append(part.edits._replace(records=part.edits.records + n_texts))
        n_texts += len(part.texts)
    return Stretch(
        parts[0].contig,
        parts[0].first,
        parts[-1].last,
        joined_edits(edits),
        [text for part in parts for text in part.texts],
        [one for part in parts for one in part.unsearched],
        parts[0].begin,
        parts[0].end,
    )


def _cut(stretch: Stretch, context: int) -> tuple[Stretch, Stretch]:
    """Return the part of a stretch to which no later line may add edits, and the rest.

    Both have the edits of a window more next to their common end, so that sites on both sides of
    it are in complete windows.
    """
    # Later lines have edits from the position of the last line on.
    is_known = stretch.edits.starts < stretch.last
    done = _in_order(stretch._replace(edits=taken_edits(stretch.edits, is_known)))
    end = stretch.last - 2 * context
    near = taken_edits(done.edits, done.edits.stops > end - 2 * context)
    rest = joined_edits([near, taken_edits(stretch.edits, ~is_known)])
    used, records = np.unique(rest.records, return_inverse=True)
    return done._replace(end=end), stretch._replace(
        edits=rest._replace(records=records.astype(np.int64)),
        texts=[stretch.texts[i] for i in used],
        unsearched=[],
        begin=end,
    )


# Text of VCF, from either format.


def _text_blocks(path: str | os.PathLike, threads: int) -> Iterator[bytes]:
    blocks = read_blocks(path, _BLOCK_BYTES, threads)
    first = next(blocks, b"")
    if bytes(first[:3]) == b"BCF":
        if not os.path.isfile(path):
            raise UsageError(f"{path}: BCF must be a file: to use a pipe, write VCF to it")
        return _bcf_blocks(path)
    return itertools.chain([first], blocks)


def _bcf_blocks(path: str | os.PathLike) -> Iterator[bytes]:
    """Yield the lines that bcftools view would print."""
    level = pysam.set_verbosity(0)
    try:
        with pysam.VariantFile(os.fspath(path)) as file:
            yield str(file.header).encode()
            waiting, size = [], 0
            for record in file:
                waiting.append(str(record))
                size += len(waiting[-1])
                if size >= _BLOCK_BYTES:
                    yield "".join(waiting).encode()
                    waiting, size = [], 0
            yield "".join(waiting).encode()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: damaged BCF: {error}") from error
    finally:
        pysam.set_verbosity(level)


def _whole_lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        end = lines.after_last_line(read_only(np.frombuffer(block, np.uint8)))
        if end:
            # One copy, of blocks that may be views.
            yield b"".join([rest, block[:end]])
            rest = bytes(block[end:])
        else:
            rest += bytes(block)
    if rest:
        yield rest
