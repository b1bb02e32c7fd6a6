"""A reference: its contigs, its bases packed in 2 bits, and its unambiguous segments.

There are three coordinate systems, all 0-based:

    contig     chr1: A C G N N T A      chr2: G G              position within one contig
    genome           0 1 2 3 4 5 6            7 8              concatenated contigs
    text             A C G |   T A |          G G |            the indexed text:
                     0 1 2 3   4 5 6          7 8 9            | is a separator

A segment is a maximal stretch of A, C, G and T within a contig. The text is the segments in order,
each followed by one separator, so no match in the text can cover an ambiguous base or a contig
border, and a run of N has no cost.
"""

import hashlib
import itertools
import os
from dataclasses import dataclass, field

import numpy as np

from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.fastx import lone_return_error, not_fasta_error
from bwarp.io.line_scan import SLACK, count_byte, encode_line, find_byte, letter_table
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range
from bwarp.sequence import AMBIGUOUS, CODE_OF_BYTE, pack, unpack

#: SA rows and genome positions are 32-bit numbers.
LONGEST_TEXT = 2**32 - 2

_HEADER = ord(">")
_FEED, _RETURN = 10, 13

#: While reading a file, every IUPAC letter has its own code, for the checksums of contigs.
_LETTERS = b"ACGTNRYSWKMBDHVU"
_CODE_OF_LETTER = CODE_OF_BYTE[np.frombuffer(_LETTERS, np.uint8)]


def _letter_codes() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for code, letter in enumerate(_LETTERS):
        table[letter] = table[letter + 32] = code
    return letter_table(table)


_TABLE = _letter_codes()


@dataclass(frozen=True)
class Reference:
    """Contigs and segments of a reference, without the index.

    Attributes
    ----------
    names : tuple of str
        The first word of the header of each contig.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
        The genome position of the start of each contig, plus the length of the genome.
    md5 : tuple of str
        The MD5 of the upper-case letters of each contig: M5 of SAM @SQ lines.
    segment_genome : ndarray, shape=(n_segments,), dtype=uint32
        The genome position of the start of each segment.
    segment_text : ndarray, shape=(n_segments + 1,), dtype=int64
        The text position of the start of each segment, plus the length of the text.
    packed : ndarray, shape=(n_bases // 32 + 2,), dtype=uint64
        The genome in 2 bits per base (see `bwarp.sequence.pack`); ambiguous bases are A.
    alt : tuple of int
        Numbers of the ALT contigs: alternate copies of parts of the others.
    """

    names: tuple[str, ...]
    contig_starts: np.ndarray
    md5: tuple[str, ...] = field(repr=False)
    segment_genome: np.ndarray
    segment_text: np.ndarray
    packed: np.ndarray = field(repr=False)
    alt: tuple[int, ...] = ()

    @property
    def n_bases(self) -> int:
        """The number of bases of all contigs, including ambiguous ones."""
        return int(self.contig_starts[-1])

    @property
    def text_length(self) -> int:
        """The number of unambiguous bases plus one separator per segment."""
        return int(self.segment_text[-1])

    @property
    def n_segments(self) -> int:
        return len(self.segment_genome)

    def contigs_without_segments(self) -> list[str]:
        """Return the names of contigs without A, C, G or T."""
        held = np.zeros(len(self.names), bool)
        held[self.contig_of(self.segment_genome.astype(np.int64))] = True
        return [name for name, has in zip(self.names, held, strict=True) if not has]

    def genome_position(self, text_position: np.ndarray) -> np.ndarray:
        """Convert text positions, except separators, to genome positions (dtype int64)."""
        text_position = np.asarray(text_position, np.int64)
        segment = np.searchsorted(self.segment_text, text_position, side="right") - 1
        within = text_position - self.segment_text[segment]
        return self.segment_genome[segment] + within

    def contig_of(self, genome_position: np.ndarray) -> np.ndarray:
        """Return the number of the contig at each genome position (dtype int64)."""
        # An empty contig begins where the next one does; "right" finds the one with bases.
        return np.searchsorted(self.contig_starts, genome_position, side="right") - 1


def read_reference(path: str | os.PathLike, threads: int = 1) -> Reference:
    """Read a FASTA file, plain or compressed, as a reference.

    Raises
    ------
    InputError
        If the file is empty, not FASTA, not of nucleotides, or has a contig name twice.
    """
    names, contig_starts, codes = _read_contigs(path)
    if not names:
        raise InputError(f"{path}: the file contains no sequences")
    if codes.size == 0:
        raise InputError(f"{path}: all contigs are empty")
    check_size(path, codes.size)
    md5 = _contig_md5(codes, contig_starts, threads)
    if codes.max() > AMBIGUOUS:
        codes = _CODE_OF_LETTER[codes]
    reference = make_reference(tuple(names), contig_starts, codes, md5, threads)
    if reference.n_segments == 0:
        raise InputError(f"{path}: no contig has an A, C, G or T: there is nothing to index")
    check_size(path, reference.text_length)
    return reference


def check_size(where: str | os.PathLike, n_bases: int) -> None:
    """Raise an error if a text is too long for an index."""
    if n_bases > LONGEST_TEXT:
        raise InputError(
            f"{where}: {n_bases:,} bases exceed the maximum of {LONGEST_TEXT:,} for one index: "
            "split the reference"
        )


def make_reference(
    names: tuple[str, ...],
    contig_starts: np.ndarray,
    codes: np.ndarray,
    md5: tuple[str, ...] | None = None,
    threads: int = 1,
) -> Reference:
    """Make a reference from codes (shape=(n_bases,), dtype=uint8) and contig starts.

    Without given checksums, they are computed from the codes, with N for every ambiguous base.
    """
    md5 = md5 or _contig_md5(codes, contig_starts, threads)
    contig_starts = np.asarray(contig_starts, np.int64)
    segments = np.empty((16, 2), np.int64)
    n_segments = _find_segments(codes, contig_starts, segments)
    if n_segments > len(segments):
        segments = np.empty((n_segments, 2), np.int64)
        _find_segments(codes, contig_starts, segments)
    segments = segments[:n_segments]
    ends = np.cumsum(segments[:, 1] - segments[:, 0] + 1)
    packed = pack(codes, threads)
    # Read-only, like a loaded index: for a writable array, functions would be compiled again.
    packed.setflags(write=False)
    return Reference(
        names=tuple(names),
        contig_starts=contig_starts,
        md5=md5,
        segment_genome=segments[:, 0].astype(np.uint32),
        segment_text=np.concatenate([[0], ends]).astype(np.int64),
        packed=packed,
    )


def codes_of(reference: Reference, threads: int = 1) -> np.ndarray:
    """Return the concatenated contigs: 0 to 3 for A, C, G, T, and 4 for ambiguous bases.

    Returns
    -------
    codes : ndarray, shape=(n_bases,), dtype=uint8
    """
    return codes_between(reference, 0, reference.n_bases, threads)


def codes_between(reference: Reference, start: int, stop: int, threads: int = 1) -> np.ndarray:
    """Return a part of `codes_of` between two genome positions, dtype uint8."""
    codes = unpack(reference.packed, start, stop, threads)
    stretches = np.clip(ambiguous_stretches(reference), start, stop) - start
    for first, last in stretches[stretches[:, 0] < stretches[:, 1]]:
        codes[first:last] = AMBIGUOUS
    return codes


def ambiguous_stretches(reference: Reference) -> np.ndarray:
    """Return the starts and ends of stretches of ambiguous bases in the genome.

    Returns
    -------
    stretches : ndarray, shape=(n, 2), dtype=int64
    """
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    # Bases between segments are ambiguous; at a mere contig border there are none between them.
    gaps = np.column_stack([np.append(0, stops), np.append(starts, reference.n_bases)])
    return gaps[gaps[:, 0] < gaps[:, 1]]


def text_of(reference: Reference, threads: int = 1) -> np.ndarray:
    """Return the indexed text: 1 to 4 for A, C, G, T, and 0 for separators.

    Returns
    -------
    text : ndarray, shape=(text_length,), dtype=uint8
    """
    text = np.zeros(reference.text_length, np.uint8)
    packed, genome, starts = reference.packed, reference.segment_genome, reference.segment_text
    for_each_range(
        lambda start, stop: _write_text(packed, genome, starts, text, start, stop),
        reference.text_length,
        threads,
    )
    return text


def _contig_md5(codes: np.ndarray, contig_starts: np.ndarray, threads: int) -> tuple[str, ...]:
    letters = _LETTERS.ljust(256, b"?")

    def md5_of(first: int, last: int) -> list[str]:
        sums = []
        for contig in range(first, last):
            md5 = hashlib.md5(usedforsecurity=False)
            for start in range(contig_starts[contig], contig_starts[contig + 1], 1 << 20):
                piece = codes[start : min(start + (1 << 20), contig_starts[contig + 1])]
                md5.update(piece.tobytes().translate(letters))
            sums.append(md5.hexdigest())
        return sums

    n_contigs = len(contig_starts) - 1
    return tuple(itertools.chain(*for_each_range(md5_of, n_contigs, threads, smallest=1)))


def _read_contigs(path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Read names, genome starts and codes of all contigs of a FASTA file."""
    names: list[str] = []
    starts: list[int] = []
    lines_of: dict[str, int] = {}
    # A plain file has no more bases than bytes; for a compressed one the buffer grows.
    codes = np.empty(_size_of(path) + SLACK, np.uint8)
    used = 0
    line = 1
    last_byte = _FEED
    header: bytes | None = None  # as far as it has been read
    for block in read_blocks(path):
        data = np.frombuffer(block, np.uint8)
        if codes.size < used + data.size + SLACK:
            codes.resize(max(2 * codes.size, used + data.size + SLACK), refcheck=False)
        if last_byte == _RETURN and data[0] != _FEED and header is None:
            raise lone_return_error(f"{path}, line {line}: ")
        at = 0
        while at < data.size:
            start = at
            if header is not None:
                at = find_byte(data, at, data.size, _FEED)
                header += block[start:at]
                if at == data.size:
                    break
                _add_contig(path, header, line, names, lines_of)
                starts.append(used)
                header = None
            at, used = _encode_lines(data, at, _TABLE, codes, used)
            if used and not names:
                at = len(block) - len(block[start:].lstrip(b" \t\r\n"))  # back to the first base
            line += int(count_byte(data, start, at, _FEED))
            if at < data.size:
                before = data[at - 1] if at else last_byte
                if before != _FEED or data[at] != _HEADER:
                    raise _letter_error(path, line, block[at : at + 1], before == _FEED, names)
                header = b""
                at += 1
        last_byte = data[-1]
    if header is not None:
        _add_contig(path, header, line, names, lines_of)
        starts.append(used)
    codes.resize(used, refcheck=False)
    return names, np.array([*starts, used], np.int64), codes


def _size_of(path) -> int:
    return os.stat(path).st_size if os.path.isfile(path) else 0


def _add_contig(path, header: bytes, line: int, names: list[str], lines_of: dict) -> None:
    if b"\r" in header.removesuffix(b"\r"):
        raise lone_return_error(f"{path}, line {line}: ")
    words = header.split(maxsplit=1)
    if not words:
        raise InputError(f"{path}, line {line}: a contig without a name: write >name")
    name = words[0].decode("utf-8", "replace")
    if name in lines_of:
        raise InputError(
            f"{path}, line {line}: two contigs are named {name!r}, the first in line "
            f"{lines_of[name]}: rename one"
        )
    lines_of[name] = line
    names.append(name)


def _letter_error(path, line: int, letter: bytes, begins_line: bool, names: list) -> InputError:
    start = f"{path}, line {line}: "
    if letter == b"\r":
        return lone_return_error(start)
    if letter == b"@" and begins_line and not names:
        return not_fasta_error(start)
    if not names:
        return InputError(f"{start}a FASTA file must begin with a line such as >chr1")
    shown = letter.decode("latin-1")
    if shown.upper() in "EFILPQXZJO*":
        return InputError(
            f"{start}{shown!r} is a protein letter: the reference must be DNA or RNA (IUPAC "
            "letters)"
        )
    return InputError(f"{start}{shown!r} is not a nucleotide letter (IUPAC)")


@compiled(counted=False)
def interval_at(starts, position):
    """Return the number of the contig or segment at a position, given the start of each.

    It is -1 before the first one. `np.searchsorted` would take much longer to compile.
    """
    low, high = np.int64(0), starts.size
    while low < high:
        middle = (low + high) >> 1
        if starts[middle] <= position:
            low = middle + 1
        else:
            high = middle
    return low - 1


@compiled
def _encode_lines(data, at, table, codes, used):
    """Encode bases from `at` on, skipping blanks, up to a byte that is neither, or a lone CR.

    Returns the position reached and the number of codes so far.
    """
    while True:
        reached = encode_line(data, at, data.size, table, codes, used)
        used += reached - at
        at = reached
        while at < data.size and (data[at] == _FEED or data[at] in (9, _RETURN, 32)):
            # It is not known yet whether a line feed follows the last byte.
            if data[at] == _RETURN and at + 1 < data.size and data[at + 1] != _FEED:
                return at, used
            at += 1
        if at == data.size or table[min(data[at], np.uint8(127))] == 255:
            return at, used


@compiled
def _find_segments(codes, contig_starts, segments):
    """Write start and stop of the segments, as far as they fit; return their number."""
    n_segments = 0
    for contig in range(contig_starts.size - 1):
        stop = contig_starts[contig + 1]
        at = contig_starts[contig]
        while at < stop:
            while at < stop and codes[at] == AMBIGUOUS:
                at += 1
            start = at
            while at < stop and codes[at] != AMBIGUOUS:
                at += 1
            if start < at:
                if n_segments < len(segments):
                    segments[n_segments, 0] = start
                    segments[n_segments, 1] = at
                n_segments += 1
    return n_segments


@compiled
def _write_text(packed, segment_genome, segment_text, text, start, stop):
    """Write the bases of the text from `start` to `stop`; separators are already there."""
    segment = interval_at(segment_text, start)
    while start < stop:
        end = min(stop, segment_text[segment + 1] - 1)
        shift = np.int64(segment_genome[segment]) - segment_text[segment]
        for at in range(start, end):
            base = at + shift
            text[at] = 1 + ((packed[base >> 5] >> np.uint64(62 - 2 * (base & 31))) & np.uint64(3))
        segment += 1
        start = segment_text[segment]
