"""Write the tables of an off-target search: sites, and OUT.guides.tsv with counts per guide."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numba
import numpy as np

from bwarp.io.atomic_output import atomic_files, part_folder, real_path
from bwarp.io.line_scan import SLACK
from bwarp.io.names import MOST_DIGITS, Names, put_bytes, put_field, put_number
from bwarp.offtargets.guide_counts import GuideCounts, HitsByGuide
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions
from bwarp.offtargets.site_rows import Features, SiteRows, describe, overlapping
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE, LONGEST_PAM
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import in_order
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
_KINDS = Names.of(["X", "DNA", "RNA", "DNA+RNA"])

#: Three texts of an alignment with its PAM, and ten numbers.
_LINE = 3 * (LONGEST_GUIDE + BULGES_EACH + LONGEST_PAM + 1) + 12 * (MOST_DIGITS + 8)


class SiteText:
    """Format rows as lines of one layout.

    Attributes
    ----------
    header : bytes
        The header line; empty for BED.
    """

    def __init__(
        self, layout: str, guides: Guides, pam: Pam, contigs, features: Features | None,
        with_ranks: bool,
    ):  # fmt: skip
        self._layout = _LAYOUTS.index(layout)
        self._with_features = features is not None
        self._with_ranks = with_ranks
        self._features = features
        self._guides, self._contigs = Names.of(guides.names), Names.of(contigs)
        self._sequences = Names.of(guides.sequences)
        self._pams = Names.of(pam.texts or ("",))
        self._pam_is_last = pam.side == 3
        columns = _HEADERS[layout].split()
        if layout == "tsv":
            columns += ["alignment"] * with_ranks + ["annotation"] * self._with_features
        line = "\t".join(columns).replace("Bulge_", "Bulge ")
        self.header = f"{line}\n".encode() if columns else b""

    def lines(self, rows: SiteRows) -> np.ndarray:
        """Return the lines of rows, dtype uint8."""
        hits, features = rows.hits, self._features
        names_of = np.empty((hits.count, 2), np.int64)
        names_of[:] = 0
        extra = 0
        if features is not None:
            extra = _name_bytes(
                features.starts, features.stops, features.reach, features.names.bounds, hits.starts,
                hits.lengths, names_of,
            )  # fmt: skip
            named, stops = features.names, features.stops
        else:
            named, stops = self._pams, hits.starts
        longest = 2 * self._guides.longest + self._contigs.longest
        text = np.empty(hits.count * (_LINE + longest) + extra + SLACK, np.uint8)
        used = _write_lines(
            self._layout, self._with_features, self._with_ranks, self._pam_is_last,
            hits.guides, hits.strands, hits.mismatches, hits.dna_bulges, hits.rna_bulges,
            hits.ranks, hits.starts, rows.contigs, rows.starts, rows.ends, rows.cuts,
            rows.guide_text,
            rows.site_text, rows.widths, rows.pams, rows.pam_lengths, rows.pam_numbers,
            rows.seed_mismatches,
            rows.cfd, rows.mit, names_of, stops, named.text, named.bounds,
            self._guides.text, self._guides.bounds, self._sequences.text, self._sequences.bounds,
            self._contigs.text, self._contigs.bounds, self._pams.text, self._pams.bounds,
            _KINDS.text, _KINDS.bounds, text,
        )  # fmt: skip
        return text[:used]


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


@numba.njit(nogil=True, forceinline=True)
def _put_row(text, at, source, row, width):
    for i in range(width):
        text[at + i] = source[row, i]
    return at + width


@numba.njit(nogil=True, forceinline=True)
def _put_byte(text, at, byte):
    text[at] = byte
    return at + 1


@numba.njit(nogil=True, forceinline=True)
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


@numba.njit(nogil=True, forceinline=True)
def _put_with_pam(text, at, source, row, width, pam, first, last, pam_is_last):
    """Write a text and the PAM, ``pam[first:last]``, on its side."""
    if not pam_is_last:
        at = put_bytes(text, at, pam, first, last)
    at = _put_row(text, at, source, row, width)
    if pam_is_last:
        at = put_bytes(text, at, pam, first, last)
    return at


@compiled
def _write_lines(
    layout, with_features, with_ranks, pam_is_last, guides, strands, mismatches, dna_bulges,
    rna_bulges, ranks, genome_starts, contigs, starts, ends, cuts, guide_text, site_text, widths,
    pams, pam_lengths, pam_numbers, seeds, cfd, mit, names_of, feature_stops, feature_text,
    feature_bounds, name_text, name_bounds, sequence_text, sequence_bounds, contig_text,
    contig_bounds, pam_text, pam_bounds, kind_text, kind_bounds, text,
):  # fmt: skip
    """Write one line per row; return the end of the last one."""
    at = 0
    for row in range(guides.size):
        guide, contig, width = guides[row], contigs[row], widths[row]
        strand = _MINUS if strands[row] else _PLUS
        bulges = np.int64(dna_bulges[row]) + np.int64(rna_bulges[row])
        name_first, name_last = name_bounds[guide, 0], name_bounds[guide, 1]
        contig_first, contig_last = contig_bounds[contig, 0], contig_bounds[contig, 1]
        pam_first, pam_last = pam_bounds[pam_numbers[row], 0], pam_bounds[pam_numbers[row], 1]
        length = pam_lengths[row]
        # The start and end of the site with its PAM.
        pam_follows = pam_is_last == (strands[row] == 0)
        left = starts[row] - (0 if pam_follows else length)
        right = ends[row] + (length if pam_follows else 0)
        if layout == _TSV:
            at = put_bytes(text, at, name_text, name_first, name_last)
            at = _put_byte(text, at, _TAB)
            at = _put_row(text, at, guide_text, row, width)
            at = _put_byte(text, at, _TAB)
            at = _put_row(text, at, site_text, row, width)
            at = _put_byte(text, at, _TAB)
            at = _put_row(text, at, pams, row, length)
            at = _put_byte(text, at, _TAB)
            at = put_bytes(text, at, contig_text, contig_first, contig_last)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, starts[row], _TAB)
            at = put_field(text, at, ends[row], _TAB)
            at = _put_byte(text, at, strand)
            at = _put_byte(text, at, _TAB)
            if cuts[row] >= 0:
                at = put_number(text, at, cuts[row])
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, np.int64(mismatches[row]), _TAB)
            at = put_field(text, at, np.int64(dna_bulges[row]), _TAB)
            at = put_field(text, at, np.int64(rna_bulges[row]), _TAB)
            at = put_field(text, at, np.int64(seeds[row]), _TAB)
            at = _put_decimals(text, at, cfd[row])
            at = _put_byte(text, at, _TAB)
            at = _put_decimals(text, at, mit[row])
            if with_ranks:
                at = _put_byte(text, at, _TAB)
                at = put_number(text, at, np.int64(ranks[row]) + 1)
            if with_features:
                at = _put_byte(text, at, _TAB)
        elif layout == _BED:
            at = put_bytes(text, at, contig_text, contig_first, contig_last)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, starts[row], _TAB)
            at = put_field(text, at, ends[row], _TAB)
            at = put_bytes(text, at, name_text, name_first, name_last)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, np.int64(mismatches[row]) + bulges, _TAB)
            at = _put_byte(text, at, strand)
        elif layout == _CAS_OFFINDER:
            kind = np.int64(dna_bulges[row] > 0) + 2 * np.int64(rna_bulges[row] > 0)
            at = put_bytes(text, at, name_text, name_first, name_last)
            at = _put_byte(text, at, _TAB)
            at = put_bytes(text, at, kind_text, kind_bounds[kind, 0], kind_bounds[kind, 1])
            at = _put_byte(text, at, _TAB)
            at = _put_with_pam(
                text, at, guide_text, row, width, pam_text, pam_first, pam_last, pam_is_last
            )
            at = _put_byte(text, at, _TAB)
            at = _put_with_pam(text, at, site_text, row, width, pams[row], 0, length, pam_is_last)
            at = _put_byte(text, at, _TAB)
            at = put_bytes(text, at, contig_text, contig_first, contig_last)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, left, _TAB)
            at = _put_byte(text, at, strand)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, np.int64(mismatches[row]), _TAB)
            at = put_number(text, at, bulges)
        else:
            at = put_bytes(text, at, name_text, name_first, name_last)
            at = _put_byte(text, at, _TAB)
            sequence_first, sequence_last = sequence_bounds[guide, 0], sequence_bounds[guide, 1]
            if not pam_is_last:
                at = put_bytes(text, at, pam_text, pam_first, pam_last)
            at = put_bytes(text, at, sequence_text, sequence_first, sequence_last)
            if pam_is_last:
                at = put_bytes(text, at, pam_text, pam_first, pam_last)
            at = _put_byte(text, at, _TAB)
            for i in range(length if not pam_is_last else 0):
                at = _put_byte(text, at, pams[row, i])
            for i in range(width):
                # In this layout mismatches have a column of their own.
                letter = site_text[row, i]
                at = _put_byte(text, at, letter - 32 if letter >= 97 else letter)
            for i in range(length if pam_is_last else 0):
                at = _put_byte(text, at, pams[row, i])
            at = _put_byte(text, at, _TAB)
            for i in range(width):
                if guide_text[row, i] == _MINUS or site_text[row, i] == _MINUS:
                    mark = _MINUS
                else:
                    mark = _DOT if guide_text[row, i] == site_text[row, i] else _STAR
                at = _put_byte(text, at, mark)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, np.int64(mismatches[row]), _TAB)
            at = _put_decimals(text, at, mit[row])
            at = _put_byte(text, at, _TAB)
            at = _put_decimals(text, at, cfd[row])
            at = _put_byte(text, at, _TAB)
            at = put_bytes(text, at, contig_text, contig_first, contig_last)
            at = _put_byte(text, at, _TAB)
            at = put_field(text, at, left + 1, _TAB)
            at = put_field(text, at, right, _TAB)
            at = _put_byte(text, at, strand)
            at = _put_byte(text, at, _TAB)
        if with_features and (layout in (_TSV, _CRISPOR)):
            begun = False
            for i in range(names_of[row, 0], names_of[row, 1]):
                if feature_stops[i] > genome_starts[row]:
                    if begun:
                        at = _put_byte(text, at, _SEMICOLON)
                    begun = True
                    at = put_bytes(
                        text, at, feature_text, feature_bounds[i, 0], feature_bounds[i, 1]
                    )
        at = _put_byte(text, at, _FEED)
    return at


def site_tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """Return the files that a search with this output writes, the sites last."""
    return [path] if str(path) == "-" else [sibling(path, "guides"), path]


class SiteTables:
    """Collect hits and write them to open tables.

    Attributes
    ----------
    counts : GuideCounts
        Of what has been written.
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
        *siblings, file = stack.enter_context(atomic_files(site_tables_at(path)))
        tables = SiteTables(HitsByGuide(guides.count, stack.enter_context(_folder(path))), counts)
        yield tables
        file.write(text.header)

        def lines_of(hits):
            rows = describe(hits, guides, pam, reference)
            return rows, text.lines(rows)

        for rows, lines in in_order(lines_of, iter(tables._hits), threads):
            counts.add(rows)
            file.write(lines)
        for table in siblings:
            table.write(counts.table().encode())


@contextmanager
def _folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder for temporary files: next to the output if that is a file."""
    output = real_path(path)
    if str(path) != "-" and (output.is_file() or not output.exists()):
        with part_folder(output.with_name(output.name + ".hits")) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
