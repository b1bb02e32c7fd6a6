"""Write loci as TSV or PAF with compiled code, plus the tables of reads over the limit or skipped.

    TSV   query strand contig start end distance mismatches insertions deletions cigar
    PAF   query length start end strand contig length start end matches columns mapq NM AS cg

Positions are 0-based and ends exclusive. Mapping qualities are not computed: they are 255.
For alignments by score, TSV has two more columns, ``score`` and ``locus_edits`` (the edits of the
locus). PAF gives the edits of the locus in the tag ``Xd`` if they differ from those of the
alignment. For pairs, the column ``pair`` in TSV and the tag ``pr`` in PAF give the number of the
pair for which a locus is listed, 0 for none.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH, SOFT_CLIP
from bwarp.allmap.alignments_cpu import LocusAlignments
from bwarp.allmap.find import FoundChunk
from bwarp.bam.fields import AS, CG, NM, PR, TEXT, XD
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_files
from bwarp.io.names import MOST_DIGITS, Names, put_bytes, put_field, put_number
from bwarp.records.alignment_records import ReadArrays
from bwarp.records.paf_records import PafColumns, put_columns
from bwarp.records.record_text import begin_tag, put_cigar, put_integer
from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.seeding.seed_tables import sibling

TSV, PAF = 0, 1

_COLUMNS = b"query\tstrand\tcontig\tstart\tend\tdistance\tmismatches\tinsertions\tdeletions\tcigar"


def loci_header(scored: bool, paired: bool) -> bytes:
    """Return the header line of a TSV, with the columns for scores and for pairs if needed."""
    more = (b"\tscore\tlocus_edits" if scored else b"") + (b"\tpair" if paired else b"")
    return _COLUMNS + more + b"\n"


#: All possible header lines.
LOCI_HEADERS = tuple(loci_header(scored, paired) for scored in (0, 1) for paired in (0, 1))

# All of one type: Numba compiles a function anew for each type of literal.
_TAB, _NEWLINE, _PLUS, _MINUS = np.frombuffer(b"\t\n+-", np.uint8)
#: Mapping qualities are not reported.
_NO_QUALITY = 255
#: Bytes of the names and kinds of tags, at most.
_TAG_BYTES = 30
#: Columns of a line that are numbers, at most.
_NUMBERS = 15
_ENDS = np.frombuffer(b"/1/2", np.uint8)


class _Tables(NamedTuple):
    """What lines are written from; `numbers` of pairs are empty for single reads."""

    reads_of_chunk: ReadArrays
    contigs: Names
    contig_starts: np.ndarray
    reads: np.ndarray
    strands: np.ndarray
    locus_edits: np.ndarray
    numbers: np.ndarray
    alignments: LocusAlignments


def locus_lines(
    layout: int,
    found: FoundChunk,
    contig_starts: np.ndarray,
    contigs: Names,
    scored: bool = False,
) -> np.ndarray:
    """Format loci as `TSV` (after `loci_header`) or `PAF` lines: an array of bytes."""
    loci = found.loci
    numbers = np.empty(0, np.int64) if found.pairs is None else found.pairs.numbers
    tables = _Tables(
        ReadArrays.of(found.chunk, found.both), contigs, contig_starts, loci.reads, loci.strands,
        loci.distances, numbers, found.alignments,
    )  # fmt: skip
    text = _room(found, contigs)
    return text[: _write(layout == PAF, scored, tables, text)]


def _room(found: FoundChunk, contigs: Names) -> np.ndarray:
    """Return an upper bound of the bytes of the lines."""
    chunk, reads = found.chunk, found.loci.reads
    names = np.diff(chunk.names).reshape(-1)[reads // chunk.ends]
    line = contigs.longest + 2 + _NUMBERS * (MOST_DIGITS + 1) + _TAG_BYTES
    operations = found.alignments.cigar.size * (MOST_DIGITS + 1)
    return np.empty(int(names.sum()) + len(reads) * line + operations, np.uint8)


@compiled(counted=False)
def _write(is_paf, is_scored, tables, out):
    of_chunk, contigs, contig_starts, reads, strands, locus_edits, numbers, alignments = tables
    ends_a_template, offsets, text, names, _, _ = of_chunk
    cigar_offsets, cigar, starts, ends, distances, scores = alignments
    at = np.int64(0)
    contig = np.int64(0)
    for i in range(reads.size):
        read = reads[i]
        template, length = read // ends_a_template, offsets[read + 1] - offsets[read]
        at = put_bytes(out, at, text, names[template, 0], names[template, 1])
        if ends_a_template == 2:
            at = put_bytes(out, at, _ENDS, 2 * (read & 1), 2 * (read & 1) + 2)
        if not contig_starts[contig] <= starts[i] < contig_starts[contig + 1]:
            contig = interval_at(contig_starts, starts[i])
        first, last = cigar_offsets[i], cigar_offsets[i + 1]
        if is_paf:
            before = after = np.int64(0)
            if cigar[first] & np.uint32(15) == SOFT_CLIP:
                before = np.int64(cigar[first] >> 4)
                first += 1
            if cigar[last - 1] & np.uint32(15) == SOFT_CLIP:
                after = np.int64(cigar[last - 1] >> 4)
                last -= 1
            columns = PafColumns(length, strands[i] != 0, before, after, contig, starts[i], ends[i])
            at = put_columns(out, at, contigs, contig_starts, columns)
        else:
            out[at] = _TAB
            out[at + 1] = _MINUS if strands[i] else _PLUS
            out[at + 2] = _TAB
            first_byte, last_byte = contigs.bounds[contig, 0], contigs.bounds[contig, 1]
            at = put_bytes(out, at + 3, contigs.text, first_byte, last_byte)
            out[at] = _TAB
            at = put_field(out, at + 1, starts[i] - contig_starts[contig], _TAB)
            at = put_field(out, at, ends[i] - contig_starts[contig], _TAB)
        inserted = deleted = aligned = np.int64(0)
        for j in range(first, last):
            size, operation = np.int64(cigar[j] >> 4), cigar[j] & 15
            inserted += size if operation == INSERTION else 0
            deleted += size if operation == DELETION else 0
            aligned += size if operation == MATCH else 0
        mismatches = distances[i] - inserted - deleted
        if is_paf:
            at = put_field(out, at, aligned - mismatches, _TAB)
            at = put_field(out, at, aligned + inserted + deleted, _TAB)
            at = put_number(out, at, _NO_QUALITY)
            at = put_integer(out, at, NM, distances[i], False)
            at = put_integer(out, at, AS, scores[i], False)
            at = begin_tag(out, at, CG, TEXT, False)
        else:
            at = put_field(out, at, distances[i], _TAB)
            at = put_field(out, at, mismatches, _TAB)
            at = put_field(out, at, inserted, _TAB)
            at = put_field(out, at, deleted, _TAB)
        at = put_cigar(out, at, cigar, first, last)
        if is_scored and not is_paf:
            out[at] = _TAB
            at = put_field(out, at + 1, scores[i], _TAB)
            at = put_number(out, at, locus_edits[i])
        if is_paf and locus_edits[i] != distances[i]:
            at = put_integer(out, at, XD, locus_edits[i], False)
        if numbers.size and is_paf:
            at = put_integer(out, at, PR, numbers[i], False)
        elif numbers.size:
            out[at] = _TAB
            at = put_number(out, at + 1, numbers[i])
        out[at] = _NEWLINE
        at += 1
    return at


# Output files: the loci and two tables next to them.
#
#     OUT.tsv           the loci, or OUT.paf, either also .gz
#     OUT.over.tsv      reads with more loci, or proper pairs, than the limit, with their number
#     OUT.skipped.tsv   reads that were not searched, and why
#
# All appear once all are complete.


FORMATS = ("tsv", "tsv.gz", "paf", "paf.gz", "bam")

SIBLINGS = ("over", "skipped")
SIBLING_HEADERS = (b"query\tloci\n", b"query\treason\n")


def format_of(path: str | os.PathLike) -> str:
    """Return ``tsv``, ``paf`` or ``bam`` from the extension of a file; standard output is TSV."""
    if str(path) == "-":
        return "tsv"
    name = Path(path).name
    for ending in FORMATS:
        if name.endswith("." + ending):
            return ending.removesuffix(".gz")
    raise UsageError(f"{path}: the output must end in .bam, .tsv, .tsv.gz, .paf or .paf.gz")


def over_lines(found: FoundChunk) -> bytes:
    names = [_name(found, read) for read in found.over]
    counts = found.n_loci[found.over].tolist()
    return b"".join(b"%b\t%d\n" % pair for pair in zip(names, counts, strict=True))


def skipped_lines(found: FoundChunk) -> bytes:
    reads = np.flatnonzero(found.loci.searched < 0)
    return b"".join(b"%b\tno longer than the edits allowed\n" % _name(found, i) for i in reads)


def _name(found: FoundChunk, read: int) -> bytes:
    chunk = found.chunk
    start, stop = chunk.names[read // chunk.ends]
    end = b"/%d" % (read % 2 + 1) if chunk.ends == 2 else b""
    return chunk.text[start:stop].tobytes() + end


@contextmanager
def open_tables(
    path: str | os.PathLike, reference: Reference, paired: bool = False, scored: bool = False
) -> Iterator[tuple[Callable, Callable]]:
    """Open the tables; yield a function that formats a chunk and one that writes the text in order.

    Standard output (``-``) has no other tables.
    """
    contigs = Names.of(reference.names)
    layout = PAF if format_of(path) == "paf" else TSV
    siblings = [] if str(path) == "-" else [sibling(path, kind) for kind in SIBLINGS]
    with atomic_files([*siblings, path]) as (*others, file):
        for other, header in zip(others, SIBLING_HEADERS, strict=False):
            other.write(header)
        if layout == TSV:
            file.write(loci_header(scored, paired))

        def encode(found: FoundChunk) -> list:
            text = locus_lines(layout, found, reference.contig_starts, contigs, scored)
            return [over_lines(found), skipped_lines(found), text]

        def write(texts: list) -> None:
            for to, text in zip([*others, file], texts[-1 - len(others) :], strict=True):
                to.write(text)

        yield encode, write
