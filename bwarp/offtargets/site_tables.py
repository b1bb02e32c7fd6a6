"""Write the tables of an off-target search: sites, and OUT.guides.tsv with counts per guide."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.io.atomic_output import atomic_files, part_folder, real_path
from bwarp.io.line_scan import SLACK
from bwarp.io.names import MOST_DIGITS, Names, put_field, put_name, put_number
from bwarp.io.table_writer import TableWriter
from bwarp.offtargets.guide_counts import CountedSites, GuideCounts, HitsByGuide
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits
from bwarp.offtargets.site_rows import ROW_BYTES, Features, SiteRows, describe, overlapping
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE, LONGEST_PAM
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import VECTOR_BYTES, load, store
from bwarp.seeding.seed_tables import sibling

# Sites as lines of text, written by compiled code into arrays of bytes, in one of four layouts.
#
# tsv            all columns of `HEADER`
# bed            contig, start, end, guide, edits, strand
# cas-offinder   the columns of Cas-OFFinder 3: guide and site with the PAM, leftmost position
# crispor        the columns of CRISPOR's table of off-targets, with 1-based positions


_HEADERS = {
    "tsv": "guide guide_aligned site_aligned pam contig start end strand cut mismatches dna_bulge "
    "rna_bulge seed_mismatches cfd mit",
    "bed": "",
    "cas-offinder": "#Id Bulge_Type crRNA DNA Chromosome Location Direction Mismatches Bulge_Size",
    "crispor": "guideId guideSeq offtargetSeq mismatchPos mismatchCount mitOfftargetScore "
    "cfdOfftargetScore chrom start end strand locusDesc",
}
_LAYOUTS = tuple(_HEADERS)
_TSV, _BED, _CAS_OFFINDER, _CRISPOR = range(4)

_TAB, _FEED, _SEMICOLON, _DOT = ord("\t"), ord("\n"), ord(";"), ord(".")
_PLUS, _MINUS, _STAR, _ZERO = ord("+"), ord("-"), ord("*"), ord("0")

#: Three texts of an alignment with its PAM, and ten numbers.
_LINE = 3 * (LONGEST_GUIDE + BULGES_EACH + LONGEST_PAM + 1) + 12 * (MOST_DIGITS + 8)


class _Layout(NamedTuple):
    """What a line has: the layout's number, and optional columns."""

    number: int
    with_features: bool
    with_ranks: bool
    with_variants: bool
    pam_is_last: bool


class _Sites(NamedTuple):
    """Columns of `SiteHits` and `SiteRows`, and the range of features at each site."""

    guides: np.ndarray
    strands: np.ndarray
    mismatches: np.ndarray
    dna_bulges: np.ndarray
    rna_bulges: np.ndarray
    ranks: np.ndarray
    contigs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    cuts: np.ndarray
    guide_text: np.ndarray
    site_text: np.ndarray
    widths: np.ndarray
    pams: np.ndarray
    pam_lengths: np.ndarray
    pam_numbers: np.ndarray
    seed_mismatches: np.ndarray
    cfd: np.ndarray
    mit: np.ndarray
    genome_starts: np.ndarray
    names_of: np.ndarray


_OF_HITS = _Sites._fields[:6]
_OF_ROWS = _Sites._fields[6:19]


class _Words(NamedTuple):
    """The texts that lines are made of, and where in the genome each feature ends."""

    guides: Names
    sequences: Names
    contigs: Names
    pams: Names
    bulges: Names
    features: Names
    feature_stops: np.ndarray
    variants: Names


class SiteText:
    """Format rows as lines of one layout.

    Attributes
    ----------
    header : bytes
        The header line; empty for BED.
    """

    def __init__(
        self, layout: str, guides: Guides, pam: Pam, contigs, features: Features | None,
        with_ranks: bool, of_variants: tuple[str, ...] = (),
    ):  # fmt: skip
        with_features = features is not None
        self._layout = _Layout(
            _LAYOUTS.index(layout), with_features, with_ranks, bool(of_variants),
            pam_is_last=pam.side == 3,
        )  # fmt: skip
        self._features = features
        nothing = Names.of([""])
        self._words = _Words(
            guides=Names.of(guides.names),
            sequences=Names.of(guides.sequences),
            contigs=Names.of(contigs),
            pams=Names.of(pam.texts or ("",)),
            bulges=Names.of(["X", "DNA", "RNA", "DNA+RNA"]),
            features=nothing,
            feature_stops=np.zeros(1, np.int64),
            variants=nothing,
        )
        columns = _HEADERS[layout].split()
        if layout == "tsv":
            columns += ["alignment"] * with_ranks + ["annotation"] * with_features
            columns += of_variants
        line = "\t".join(columns).replace("Bulge_", "Bulge ")
        self.header = f"{line}\n".encode() if columns else b""

    def lines(self, rows: SiteRows, variants: Names | None = None) -> np.ndarray:
        """Return the lines of rows, dtype uint8; `variants` has the last columns of each."""
        hits, features = rows.hits, self._features
        words = self._words
        names_of = np.zeros((hits.count, 2), np.int64)
        extra = 0
        if variants is not None:
            words = words._replace(variants=variants)
            extra = int(np.diff(variants.bounds).sum()) + hits.count
        if features is not None:
            words = words._replace(features=features.names, feature_stops=features.stops)
            extra += _name_bytes(
                features.starts, features.stops, features.reach, features.names.bounds, hits.starts,
                hits.lengths, names_of,
            )  # fmt: skip
        sites = _Sites(
            names_of=names_of,
            genome_starts=hits.starts,
            **{name: getattr(hits, name) for name in _OF_HITS},
            **{name: getattr(rows, name) for name in _OF_ROWS},
        )
        sites = sites._replace(
            guide_text=rows.guide_text.reshape(-1), site_text=rows.site_text.reshape(-1)
        )
        longest = 2 * words.guides.longest + words.contigs.longest
        text = np.empty(hits.count * (_LINE + longest) + extra + SLACK, np.uint8)
        return text[: _write_lines(self._layout, sites, words, text)]


@compiled
def _name_bytes(starts, stops, reach, bounds, site_starts, lengths, names_of):
    """Write the range of features of each site; return the total bytes of their names."""
    total = 0
    for row in range(site_starts.size):
        last = site_starts[row] + lengths[row]
        begin, end = overlapping(starts, stops, reach, site_starts[row], last)
        names_of[row, 0], names_of[row, 1] = begin, end
        for i in range(begin, end):
            if stops[i] > site_starts[row]:
                total += bounds[i, 1] - bounds[i, 0] + 1
    return total


@inner(nogil=True, forceinline=True)
def _put_row(text, at, source, row, width):
    """Write a row of aligned text; overwrites up to `SLACK` bytes after it."""
    for i in range(0, width, VECTOR_BYTES):
        store(text, at + i, load(source, row * ROW_BYTES + i))
    return at + width


@inner(nogil=True, forceinline=True)
def _put_pam(text, at, sites, row):
    for i in range(sites.pam_lengths[row]):
        text[at + i] = sites.pams[row, i]
    return at + sites.pam_lengths[row]


@inner(nogil=True, forceinline=True)
def _put_count(text, at, number):
    """Write a number, which is usually a single digit, and a tab."""
    if number < 10:
        text[at] = _ZERO + number
        text[at + 1] = _TAB
        return at + 2
    return put_field(text, at, np.int64(number), _TAB)


@inner(nogil=True, forceinline=True)
def _put_byte(text, at, byte):
    text[at] = byte
    return at + 1


@inner(nogil=True, forceinline=True)
def _put_decimals(text, at, value):
    """Write six decimals; nothing for NaN."""
    if np.isnan(value):
        return at
    millionths = np.int64(np.floor(value * 1e6 + 0.5))
    at = put_number(text, at, millionths // 1000000)
    text[at] = _DOT
    rest = millionths % 1000000
    for i in range(6, 0, -1):
        text[at + i] = _ZERO + rest % 10
        rest //= 10
    return at + 7


@inner(nogil=True, forceinline=True)
def _put_name(text, at, names, number):
    """Write a name and a tab."""
    return _put_byte(text, put_name(text, at, names, number), _TAB)


@inner(nogil=True, forceinline=True)
def _put_strand(text, at, sites, row):
    return _put_byte(text, at, _MINUS if sites.strands[row] else _PLUS)


@inner(nogil=True, forceinline=True)
def _bulges(sites, row):
    return np.int64(sites.dna_bulges[row]) + np.int64(sites.rna_bulges[row])


@inner(nogil=True, forceinline=True)
def _ends_with_pam(layout, sites, row):
    """Return the start and end of a site with its PAM."""
    length = sites.pam_lengths[row]
    pam_follows = layout.pam_is_last == (sites.strands[row] == 0)
    left = sites.starts[row] - (0 if pam_follows else length)
    right = sites.ends[row] + (length if pam_follows else 0)
    return left, right


@compiled
def _write_tsv(layout, sites, words, text):
    at = 0
    for row in range(sites.guides.size):
        width = sites.widths[row]
        at = _put_name(text, at, words.guides, sites.guides[row])
        at = _put_byte(text, _put_row(text, at, sites.guide_text, row, width), _TAB)
        at = _put_byte(text, _put_row(text, at, sites.site_text, row, width), _TAB)
        at = _put_byte(text, _put_pam(text, at, sites, row), _TAB)
        at = _put_name(text, at, words.contigs, sites.contigs[row])
        at = put_field(text, at, sites.starts[row], _TAB)
        at = put_field(text, at, sites.ends[row], _TAB)
        at = _put_byte(text, _put_strand(text, at, sites, row), _TAB)
        if sites.cuts[row] >= 0:
            at = put_number(text, at, sites.cuts[row])
        at = _put_byte(text, at, _TAB)
        at = _put_count(text, at, sites.mismatches[row])
        at = _put_count(text, at, sites.dna_bulges[row])
        at = _put_count(text, at, sites.rna_bulges[row])
        at = _put_count(text, at, sites.seed_mismatches[row])
        at = _put_byte(text, _put_decimals(text, at, sites.cfd[row]), _TAB)
        at = _put_decimals(text, at, sites.mit[row])
        if layout.with_ranks:
            at = put_number(text, _put_byte(text, at, _TAB), np.int64(sites.ranks[row]) + 1)
        if layout.with_features:
            at = _put_features(text, _put_byte(text, at, _TAB), sites, words, row)
        if layout.with_variants:
            at = put_name(text, _put_byte(text, at, _TAB), words.variants, row)
        at = _put_byte(text, at, _FEED)
    return at


@compiled
def _write_bed(sites, words, text):
    at = 0
    for row in range(sites.guides.size):
        at = _put_name(text, at, words.contigs, sites.contigs[row])
        at = put_field(text, at, sites.starts[row], _TAB)
        at = put_field(text, at, sites.ends[row], _TAB)
        at = _put_name(text, at, words.guides, sites.guides[row])
        at = put_field(text, at, np.int64(sites.mismatches[row]) + _bulges(sites, row), _TAB)
        at = _put_strand(text, at, sites, row)
        at = _put_byte(text, at, _FEED)
    return at


@compiled
def _write_cas_offinder(layout, sites, words, text):
    at = 0
    for row in range(sites.guides.size):
        width, pam = sites.widths[row], sites.pam_numbers[row]
        bulges = np.int64(sites.dna_bulges[row] > 0) + 2 * np.int64(sites.rna_bulges[row] > 0)
        at = _put_name(text, at, words.guides, sites.guides[row])
        at = _put_name(text, at, words.bulges, bulges)
        if not layout.pam_is_last:
            at = put_name(text, at, words.pams, pam)
        at = _put_row(text, at, sites.guide_text, row, width)
        if layout.pam_is_last:
            at = put_name(text, at, words.pams, pam)
        at = _put_byte(text, at, _TAB)
        if not layout.pam_is_last:
            at = _put_pam(text, at, sites, row)
        at = _put_row(text, at, sites.site_text, row, width)
        if layout.pam_is_last:
            at = _put_pam(text, at, sites, row)
        at = _put_byte(text, at, _TAB)
        at = _put_name(text, at, words.contigs, sites.contigs[row])
        at = put_field(text, at, _ends_with_pam(layout, sites, row)[0], _TAB)
        at = _put_byte(text, _put_strand(text, at, sites, row), _TAB)
        at = _put_count(text, at, sites.mismatches[row])
        at = put_number(text, at, _bulges(sites, row))
        at = _put_byte(text, at, _FEED)
    return at


@compiled
def _write_crispor(layout, sites, words, text):
    at = 0
    for row in range(sites.guides.size):
        guide, width, pam = sites.guides[row], sites.widths[row], sites.pam_numbers[row]
        guide_text, site_text = sites.guide_text, sites.site_text
        first = row * ROW_BYTES
        at = _put_name(text, at, words.guides, guide)
        if not layout.pam_is_last:
            at = put_name(text, at, words.pams, pam)
        at = put_name(text, at, words.sequences, guide)
        if layout.pam_is_last:
            at = put_name(text, at, words.pams, pam)
        at = _put_byte(text, at, _TAB)
        if not layout.pam_is_last:
            at = _put_pam(text, at, sites, row)
        for i in range(first, first + width):
            # Mismatches have a column of their own: no lower-case letters here.
            letter = site_text[i]
            at = _put_byte(text, at, letter - 32 if letter >= 97 else letter)
        if layout.pam_is_last:
            at = _put_pam(text, at, sites, row)
        at = _put_byte(text, at, _TAB)
        for i in range(first, first + width):
            if guide_text[i] == _MINUS or site_text[i] == _MINUS:
                mark = _MINUS
            else:
                mark = _DOT if guide_text[i] == site_text[i] else _STAR
            at = _put_byte(text, at, mark)
        at = _put_byte(text, at, _TAB)
        at = _put_count(text, at, sites.mismatches[row])
        at = _put_byte(text, _put_decimals(text, at, sites.mit[row]), _TAB)
        at = _put_byte(text, _put_decimals(text, at, sites.cfd[row]), _TAB)
        at = _put_name(text, at, words.contigs, sites.contigs[row])
        left, right = _ends_with_pam(layout, sites, row)
        at = put_field(text, at, left + 1, _TAB)
        at = put_field(text, at, right, _TAB)
        at = _put_byte(text, _put_strand(text, at, sites, row), _TAB)
        if layout.with_features:
            at = _put_features(text, at, sites, words, row)
        at = _put_byte(text, at, _FEED)
    return at


@compiled
def _put_features(text, at, sites, words, row):
    """Write the names of the features that a site overlaps, with semicolons between them."""
    begun = False
    for i in range(sites.names_of[row, 0], sites.names_of[row, 1]):
        if words.feature_stops[i] > sites.genome_starts[row]:
            if begun:
                at = _put_byte(text, at, _SEMICOLON)
            begun = True
            at = put_name(text, at, words.features, i)
    return at


@compiled
def _write_lines(layout, sites, words, text):
    """Write one line per row; return where the last line ends."""
    # The loop is in the functions: passing all these arrays takes longer than writing a line.
    if layout.number == _TSV:
        return _write_tsv(layout, sites, words, text)
    if layout.number == _BED:
        return _write_bed(sites, words, text)
    if layout.number == _CAS_OFFINDER:
        return _write_cas_offinder(layout, sites, words, text)
    return _write_crispor(layout, sites, words, text)


def site_tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """Return the files that a search with this output writes, the sites last."""
    return [path] if str(path) == "-" else [sibling(path, "guides"), path]


class SiteTables:
    """Collect hits and write them to open tables.

    Attributes
    ----------
    counts : GuideCounts
        Counts of the sites written so far.
    """

    def __init__(self, hits: HitsByGuide, counts: GuideCounts):
        self._hits = hits
        self.counts = counts

    def add(self, hits: SiteHits) -> None:
        """Add hits that follow all earlier ones in the genome."""
        self._hits.add(hits)

    @property
    def n_sites(self) -> int:
        return int(self.counts.sites.sum())


@contextmanager
def open_site_tables(
    path: str | os.PathLike,
    layout: str,
    guides: Guides,
    pam: Pam,
    options: SiteOptions,
    reference: Reference,
    features: Features | None = None,
    threads: int = 1,
) -> Iterator[SiteTables]:
    """Open the tables; they are written, and appear, if the block ends without an error.

    Sites are sorted by guide, then by contig, start, end and strand. If there are many, they are
    stored in temporary files next to the output. Standard output (``-``) has no table of guides.
    """
    counts = GuideCounts(guides, pam, options)
    text = SiteText(layout, guides, pam, reference.names, features, options.all_alignments)
    with ExitStack() as stack:
        files = atomic_files(site_tables_at(path), threads=threads)
        *siblings, file = stack.enter_context(files)
        hits = HitsByGuide(guides.count, stack.enter_context(hits_folder(path)), threads=threads)
        yield SiteTables(hits, counts)
        file.write(text.header)
        parts = list(hits)

        def counts_and_lines(number: int, _) -> tuple[CountedSites, np.ndarray]:
            rows = describe(joined_hits(parts[number]), guides, pam, reference)
            return counts.of(rows), text.lines(rows)

        def write(made: tuple[CountedSites, np.ndarray]) -> None:
            counted, lines = made
            counts.add(counted)
            file.write(lines)

        with TableWriter(write, threads) as writer:
            writer.add(counts_and_lines, len(parts), at_once=1)
        for table in siblings:
            table.write(counts.table().encode())


@contextmanager
def hits_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder for temporary files: next to the output if that is a file."""
    output = real_path(path)
    if str(path) != "-" and (output.is_file() or not output.exists()):
        with part_folder(output.with_name(output.name + ".hits")) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
