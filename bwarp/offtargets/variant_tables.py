"""Write the tables of a search with variants: reference and alternative sites in one order.

reference hits (in memory)  ----------------------------.
stretch of variants -> alternative sites -> rows and columns --> merged by guide and position
                    -> columns of the reference hits ---'
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.atomic_output import atomic_files
from bwarp.io.names import Names
from bwarp.io.table_writer import TableWriter
from bwarp.offtargets.alternative_sites import (
    AlternativeSites,
    Sought,
    borders_of,
    find_alternative_sites,
    joined_rows,
    pam_follows,
    taken_origins,
    taken_rows,
)
from bwarp.offtargets.guide_counts import CountedSites, GuideCounts
from bwarp.offtargets.hits import SiteHits, joined_hits, taken_hits
from bwarp.offtargets.site_rows import Features, SiteRows, cut_of, describe
from bwarp.offtargets.site_tables import SiteText, hits_folder, site_tables_at
from bwarp.offtargets.variant_columns import (
    VARIANT_COLUMNS,
    alternative_columns,
    keys_of,
    reference_columns,
    touched_sites,
    unchanged_columns,
)
from bwarp.seeding.seed_tables import sibling
from bwarp.variants.files import Stretch, Unsearched, VariantFile
from bwarp.variants.populations import Populations

#: Rows formatted at a time.
_ROWS_AT_ONCE = 1 << 15


def variant_tables_at(
    path: str | os.PathLike, with_samples: bool = False
) -> list[str | os.PathLike]:
    """Return the files that a search with this output writes, the sites last."""
    if str(path) == "-":
        return [path]
    more = [sibling(path, "samples")] if with_samples else []
    return [sibling(path, "unsearched"), *more, *site_tables_at(path)]


class _TextFile:
    """Numbered texts in a temporary file, because they may not fit in memory."""

    def __init__(self, path: Path):
        self._path = path
        self._file = path.open("wb")
        self._lengths: list[np.ndarray] = []
        self.count = 0

    def add(self, texts: Sequence[str]) -> np.ndarray:
        """Add texts; return their numbers."""
        encoded = [text.encode() for text in texts]
        self._file.write(b"".join(encoded))
        self._lengths.append(np.array([len(text) for text in encoded], np.int64))
        self.count += len(encoded)
        return np.arange(self.count - len(encoded), self.count)

    def all(self) -> Names:
        """Return all texts, mapped into memory; none may be added afterwards."""
        self._file.close()
        text = np.empty(0, np.uint8)
        if self._path.stat().st_size:
            text = np.memmap(self._path, np.uint8, "r").view(np.ndarray)
        edges = np.cumsum(np.concatenate([[0], *self._lengths]), dtype=np.int64)
        return Names(text, np.column_stack([edges[:-1], edges[1:]]))


class VariantTables:
    """Collect the sites of a search with variants.

    Parameters
    ----------
    sought : Sought
    folder : path
        An existing folder for temporary files.
    with_samples : bool

    Attributes
    ----------
    n_variants, n_alternative : int
        Alternative alleles searched, and alternative sites.
    """

    def __init__(self, sought: Sought, folder: str | os.PathLike, with_samples: bool = False):
        self._sought, self._with_samples = sought, with_samples
        self._parts: list[SiteHits] = []
        self._hits: SiteHits | None = None
        self._columns = _TextFile(Path(folder, "columns"))
        self._carried = _TextFile(Path(folder, "samples"))
        self._unsearched = _TextFile(Path(folder, "unsearched"))
        #: The numbers of the texts of each row: of the reference, then of alternative sites.
        self._number_of: np.ndarray = np.empty(0, np.int64)
        self._numbers_of_others: list[np.ndarray] = []
        self._texts: Names = Names.of([])
        self._rows: list[SiteRows] = []
        self._alternative: SiteRows | None = None
        self.contigs: dict[str, str | os.PathLike] = {}
        self.n_variants = self.n_alternative = 0
        self.counts = GuideCounts(sought.guides, sought.pam, sought.options)

    def add(self, hits: SiteHits) -> None:
        """Add sites of the reference that follow all earlier ones in the genome."""
        self._parts.append(hits)

    def finish_reference(self) -> None:
        """Note that all sites of the reference have been added."""
        self._hits, self._parts = joined_hits(self._parts), []
        self._columns.add([unchanged_columns()])
        self._number_of = np.zeros(self._hits.count, np.int64)

    def add_file(
        self,
        path: str | os.PathLike,
        populations: dict[str, list[str]] | None = None,
        report: Callable[[], None] = lambda: None,
    ) -> None:
        """Search the variants of a file, and count the populations of its samples.

        Parameters
        ----------
        populations : dict, optional
            The populations of each sample.
        report : function, optional
            Called after every stretch of a contig.
        """
        sought = self._sought
        file = VariantFile(path, sought.reference, sought.threads, populations)
        for stretch in file.stretches(sought.reach):
            self._add_stretch(path, file, stretch)
            report()

    def _add_stretch(self, path: str | os.PathLike, file: VariantFile, stretch: Stretch) -> None:
        """Find alternative sites in a stretch of a contig, and changes of reference sites."""
        sought, populations = self._sought, file.populations
        self._list_unsearched(stretch.unsearched)
        if stretch.contig not in sought.reference.names:
            return
        contig = sought.reference.names.index(stretch.contig)
        if self.contigs.setdefault(stretch.contig, path) != path:
            raise InputError(
                f"{path}: variants of {stretch.contig} are also in {self.contigs[stretch.contig]}: "
                "join the files with bcftools merge or concat"
            )
        self.n_variants += int(stretch.contains(stretch.edits.starts).sum())
        if stretch.edits.count == 0:
            return
        if populations is not None:
            self._mark_unchanged(stretch, populations)
        found = find_alternative_sites(stretch, sought)
        self._list_unsearched([
            stretch.not_searched(
                anchor, f"combinations of more than {counted(most, 'variant')} from here on"
            )
            for anchor, most in found.limited.tolist()
        ])  # fmt: skip
        same = found.origins.same
        there = self._within(stretch)
        hits = taken_hits(self._hits, there)
        touched = touched_sites(hits, stretch.edits, sought)
        columns = reference_columns(
            hits, touched, stretch, (keys_of(found, ~same), keys_of(found, same)), populations,
            sought,
        )  # fmt: skip
        changed = there[[text is not None for text in columns]]
        self._number_of[changed] = self._columns.add([text for text in columns if text is not None])
        rows = np.flatnonzero(~same)
        edits = hits.mismatches.astype(np.int64) + hits.dna_bulges + hits.rna_bulges
        best = hits.ranks == 0
        borders = borders_of(hits, sought)
        before = dict(zip(
            zip(hits.guides[best].tolist(), hits.strands[best].tolist(), borders[best].tolist(),
                strict=True),
            edits[best].tolist(), strict=True,
        ))  # fmt: skip
        self._numbers_of_others.append(self._columns.add(
            alternative_columns(found, rows, stretch, before, populations, sought)
        ))  # fmt: skip
        if self._with_samples:
            self._carried.add([
                _samples_of(found.origins.carriers[row], file.samples)
                if populations is not None and not found.origins.free[row] else ""
                for row in rows.tolist()
            ])  # fmt: skip
        lifted = _lifted(found, rows, contig, sought)
        self._rows.append(lifted)
        self.n_alternative += int((lifted.hits.ranks == 0).sum())

    @property
    def n_unsearched(self) -> int:
        return self._unsearched.count

    @property
    def n_sites(self) -> int:
        return int(self.counts.sites.sum())

    def order(self) -> np.ndarray:
        """Return the numbers of all rows as they are written: first the reference's, then others.

        Rows of alternative sites follow those of the reference in these numbers.
        """
        self._texts = self._columns.all()
        self._number_of = np.concatenate([self._number_of, *self._numbers_of_others])
        n, tables = self._hits.count, [self._hits]
        if self._rows:
            self._alternative, self._rows = joined_rows(self._rows), []
            tables.append(self._alternative.hits)
        both = joined_hits(tables)
        is_alternative = np.arange(both.count) >= n
        # Ties are in the order of the variants.
        return np.lexsort(
            (both.ranks, is_alternative, both.strands, both.lengths, both.starts, both.guides)
        )

    def block(self, numbers: np.ndarray) -> tuple[SiteRows, SiteRows, Names]:
        """Return the rows of the reference, all rows, and their columns of variants."""
        sought, n = self._sought, self._hits.count
        is_known = numbers < n
        known = describe(
            taken_hits(self._hits, numbers[is_known]), sought.guides, sought.pam, sought.reference
        )
        if is_known.all():
            rows = known
        else:
            others = taken_rows(self._alternative, numbers[~is_known] - n)
            offset = np.empty(numbers.size, np.int64)
            offset[np.concatenate([np.flatnonzero(is_known), np.flatnonzero(~is_known)])] = (
                np.arange(numbers.size)
            )
            rows = taken_rows(joined_rows([known, others]), offset)
        bounds = self._texts.bounds[self._number_of[numbers]]
        return known, rows, self._texts._replace(bounds=bounds)

    def unsearched_text(self) -> bytes:
        """Return the table of alleles that were not searched, header first."""
        head = "\t".join(["contig", "position", "id", "ref", "alt", "reason"])
        return f"{head}\n".encode() + self._unsearched.all().text.tobytes()

    def write_samples(self, file: BinaryIO, order: np.ndarray) -> None:
        """Write the samples of each alternative site."""
        head = ["guide", "contig", "start", "end", "strand", "variants", "samples"]
        file.write(("\t".join(head) + "\n").encode())
        n, rows, carried = self._hits.count, self._alternative, self._carried.all()
        for i in (order[order >= n] - n).tolist():
            cells = [
                self._sought.guides.names[rows.hits.guides[i]],
                self._sought.reference.names[rows.contigs[i]],
                str(rows.starts[i]), str(rows.ends[i]), "+-"[rows.hits.strands[i]],
                self._texts.name(self._number_of[n + i]).split("\t")[1], carried.name(i),
            ]  # fmt: skip
            file.write(("\t".join(cells) + "\n").encode())

    def _list_unsearched(self, alleles: Sequence[Unsearched]) -> None:
        self._unsearched.add(["\t".join(one) + "\n" for one in alleles])

    def _mark_unchanged(self, stretch: Stretch, populations: Populations) -> None:
        """Count the haplotypes of sites without variants, from the first edit or its contig on."""
        edits = stretch.edits
        starts = self._hits.starts
        contig = self._sought.reference.names.index(stretch.contig)
        begin, end = self._sought.reference.contig_starts[contig : contig + 2].tolist()
        changes = np.flatnonzero(np.diff(edits.ploidies, prepend=-1))
        froms = np.maximum(edits.starts[changes], stretch.begin)
        froms[0] = max(begin, stretch.begin)
        for change, first, last in zip(
            changes.tolist(), froms.tolist(), [*froms[1:].tolist(), end], strict=True
        ):
            there = slice(*np.searchsorted(starts, [first, last]).tolist())
            present = edits.present[edits.ploidies[change]]
            self._number_of[there] = self._columns.add([unchanged_columns(populations, present)])

    def _within(self, stretch: Stretch) -> np.ndarray:
        """Return the hits of the reference that have their borders in a stretch."""
        edges = [stretch.begin - self._sought.reach, stretch.end]
        first, last = np.searchsorted(self._hits.starts, edges).tolist()
        borders = borders_of(taken_hits(self._hits, slice(first, last)), self._sought)
        return first + np.flatnonzero(stretch.contains(borders))


def _samples_of(carriers: np.ndarray, samples: tuple[str, ...]) -> str:
    bits = np.unpackbits(carriers.view(np.uint8), bitorder="little")[: 2 * len(samples)]
    return ",".join(samples[i] for i in np.flatnonzero(bits.reshape(-1, 2).any(axis=1)))


def _lifted(found: AlternativeSites, which: np.ndarray, contig: int, sought: Sought) -> SiteRows:
    """Return rows in coordinates of the reference."""
    rows, origins = taken_rows(found.rows, which), taken_origins(found.origins, which)
    begin = int(sought.reference.contig_starts[contig])
    starts, ends = origins.starts - begin, origins.ends - begin
    # The cut is as far from the PAM as on the reference.
    follows = pam_follows(rows.hits.strands, sought.pam.side)
    cuts = cut_of(origins.borders - begin, follows, sought.pam)
    lengths = np.minimum(origins.ends - origins.starts, 255).astype(np.uint8)
    hits = SiteHits(**vars(rows.hits) | {"starts": origins.starts, "lengths": lengths})
    return SiteRows(**vars(rows) | {
        "hits": hits, "contigs": np.full(which.size, contig), "starts": starts, "ends": ends,
        "cuts": cuts,
    })  # fmt: skip


@contextmanager
def open_variant_tables(
    path: str | os.PathLike,
    sought: Sought,
    features: Features | None = None,
    with_samples: bool = False,
) -> Iterator[VariantTables]:
    """Open the tables; they are written, and appear, if the block ends without an error.

    Rows are sorted by guide, then by contig, start, end, strand, and origin, reference first.
    """
    with (
        atomic_files(variant_tables_at(path, with_samples), threads=sought.threads) as files,
        hits_folder(path) as folder,
    ):
        tables = VariantTables(sought, folder, with_samples)
        yield tables
        *siblings, file = files
        order = tables.order()
        text = SiteText(
            "tsv", sought.guides, sought.pam, sought.reference.names, features,
            sought.options.all_alignments, VARIANT_COLUMNS,
        )  # fmt: skip
        file.write(text.header)

        def counts_and_lines(first: int, last: int) -> tuple[CountedSites, np.ndarray]:
            known, rows, columns = tables.block(order[first:last])
            return tables.counts.of(known), text.lines(rows, columns)

        def write(made: tuple[CountedSites, np.ndarray]) -> None:
            counted_sites, lines = made
            tables.counts.add(counted_sites)
            file.write(lines)

        with TableWriter(write, sought.threads) as writer:
            writer.add(counts_and_lines, order.size, _ROWS_AT_ONCE)
        if siblings:
            unsearched, *samples, guides = siblings
            unsearched.write(tables.unsearched_text())
            for table in samples:
                tables.write_samples(table, order)
            guides.write(tables.counts.table().encode())
