"""Write the tables of a search in several genomes, with all of their sites in one order.

hits of the reference ----> sites of each guide, in memory or a file
hits of a genome, by guide --> merged with them --> sites of each guide
...                                             --> rows and columns, by guide and position
"""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from bwarp.io.atomic_output import atomic_files
from bwarp.io.names import Names
from bwarp.io.table_writer import TableWriter
from bwarp.offtargets.alternative_sites import Sought, taken_rows
from bwarp.offtargets.genome_columns import (
    GENOME_COLUMNS,
    THE_REFERENCE,
    compared,
    genome_columns,
)
from bwarp.offtargets.genome_sites import (
    REFERENCE,
    UNLIFTED,
    Genome,
    add_genome,
    order_of_sites,
    rows_of_sites,
    sites_dtype,
    sites_of_reference,
)
from bwarp.offtargets.guide_counts import CountedSites, GuideCounts, HitsByGuide
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.site_rows import Features
from bwarp.offtargets.site_tables import SiteText, hits_folder, site_tables_at
from bwarp.runtime.chunks import in_order
from bwarp.runtime.threads import bounded_ranges

#: Sites kept in memory before they are written to a file, about 100 bytes each.
SITES_IN_MEMORY = 1 << 22

#: Sites merged, and sites formatted at a time; those of one guide are merged together.
_MERGED_AT_ONCE, _ROWS_AT_ONCE = 1 << 17, 1 << 15


class GenomeTables:
    """Collect the sites of a search in several genomes.

    Attributes
    ----------
    sites : ndarray, dtype `sites_dtype`
        By guide.
    counts : GuideCounts
        Counts of the sites of the reference written so far.
    """

    def __init__(self, sought: Sought, names: tuple[str, ...], folder: Path):
        self._sought, self._names, self._folder = sought, names, folder
        self._dtype = sites_dtype(len(names))
        self._hits: HitsByGuide | None = HitsByGuide(
            sought.guides.count, folder, threads=sought.threads
        )
        self._n_files = 0
        #: The contigs of other genomes that sites are in: genome and name by number.
        self._contigs: dict[int, tuple[str, str]] = {}
        self.sites: np.ndarray = np.empty(0, self._dtype)
        self.counts = GuideCounts(sought.guides, sought.pam, sought.options)

    def add(self, hits: SiteHits) -> None:
        """Add sites of the reference that follow all earlier ones in the genome."""
        self._hits.add(hits)

    def finish_reference(self) -> None:
        """Note that all sites of the reference have been added."""
        by_guide, sought = self._hits, self._sought
        self._replace(
            by_guide.edges(),
            lambda first, last: sites_of_reference(
                by_guide.of_guides(first, last), sought, len(self._names)
            ),
        )
        self._hits = None

    def add_genome(self, genome: Genome, found: Iterable[SiteHits]) -> None:
        """Merge the sites of a genome, in the order of its positions."""
        sought = self._sought
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            by_guide = HitsByGuide(sought.guides.count, Path(folder), threads=sought.threads)
            for hits in found:
                by_guide.add(hits)
            known = self.edges()

            def merged(first: int, last: int) -> np.ndarray:
                return add_genome(
                    self.sites[known[first] : known[last]], by_guide.of_guides(first, last),
                    genome, sought, len(self._names),
                )  # fmt: skip

            self._replace(known + by_guide.edges(), merged)
        here = (self.sites["kind"] == UNLIFTED) & (self.sites["contig"] >= genome.first_contig)
        for contig in np.unique(self.sites["contig"][here]).tolist():
            name = genome.bases.names[contig - genome.first_contig]
            self._contigs[contig] = (self._names[genome.number], name)

    def edges(self) -> np.ndarray:
        """Return the number of sites of all guides before each one, dtype int64."""
        return np.searchsorted(self.sites["guide"], np.arange(self._sought.guides.count + 1))

    @property
    def n_sites(self) -> int:
        return int(self.counts.sites.sum())

    @property
    def n_alternative(self) -> int:
        return int(((self.sites["kind"] != REFERENCE) & (self.sites["rank"] == 0)).sum())

    def contigs(self) -> tuple[np.ndarray, list[str], list[str]]:
        """Return the numbers, names and genomes of the contigs that sites may be in."""
        names = self._sought.reference.names
        numbers = np.append(np.arange(len(names)), np.array(list(self._contigs), np.int64))
        owners = [*[THE_REFERENCE] * len(names), *(owner for owner, _ in self._contigs.values())]
        return numbers, [*names, *(name for _, name in self._contigs.values())], owners

    def _replace(self, edges: np.ndarray, sites_of: Callable[[int, int], np.ndarray]) -> None:
        """Replace all sites by those that a function returns for ranges of guides."""
        ranges = bounded_ranges(edges, _MERGED_AT_ONCE)
        parts = in_order(lambda guides: sites_of(*guides), ranges, self._sought.threads)
        before = self._folder / f"{self._n_files}.sites"
        self._n_files += 1
        self.sites = _stored(parts, self._dtype, self._folder / f"{self._n_files}.sites")
        before.unlink(missing_ok=True)


def _stored(parts: Iterator[np.ndarray], dtype: np.dtype, path: Path) -> np.ndarray:
    """Concatenate parts, in a file if they are many."""
    waiting, n_waiting, n_stored = [np.empty(0, dtype)], 0, 0
    with ExitStack() as stack:
        file = None
        for part in parts:
            waiting.append(part)
            n_waiting += part.size
            if n_waiting < SITES_IN_MEMORY:
                continue
            file = file or stack.enter_context(open(path, "wb"))
            np.concatenate(waiting).tofile(file)
            waiting, n_waiting, n_stored = [np.empty(0, dtype)], 0, n_stored + n_waiting
        if file is None:
            return np.concatenate(waiting)
        np.concatenate(waiting).tofile(file)
    return np.asarray(np.memmap(path, dtype, "r"))


@contextmanager
def open_genome_tables(
    path: str | os.PathLike,
    sought: Sought,
    names: tuple[str, ...],
    features: Features | None = None,
) -> Iterator[GenomeTables]:
    """Open the tables; they are written, and appear, if the block ends without an error.

    Rows are sorted by guide, then by contig, start, end, strand, and origin, reference first; sites
    without a position in the reference follow the others of a guide.
    """
    with ExitStack() as stack:
        files = atomic_files(site_tables_at(path), threads=sought.threads)
        *siblings, file = stack.enter_context(files)
        folder = stack.enter_context(hits_folder(path))
        tables = GenomeTables(sought, names, folder)
        yield tables
        numbers, contigs, owners = tables.contigs()
        text = SiteText(
            "tsv", sought.guides, sought.pam, contigs, features, sought.options.all_alignments,
            GENOME_COLUMNS,
        )  # fmt: skip
        file.write(text.header)
        edges = tables.edges()
        ranges = list(bounded_ranges(edges, _ROWS_AT_ONCE))

        def counts_and_lines(number: int, _) -> list[tuple[CountedSites, np.ndarray]]:
            first, last = ranges[number]
            sites = tables.sites[edges[first] : edges[last]]
            sites = sites[order_of_sites(sites)]
            comparison = compared(sites, len(names))
            made = []
            for start in range(0, sites.size, _ROWS_AT_ONCE):
                some = slice(start, start + _ROWS_AT_ONCE)
                part = sites[some]
                part["contig"] = np.searchsorted(numbers, part["contig"])
                rows = rows_of_sites(part, sought)
                columns = genome_columns(
                    rows, part, type(comparison)(*(one[some] for one in comparison)), names,
                    owners, sought,
                )  # fmt: skip
                known = taken_rows(rows, part["kind"] == REFERENCE)
                made.append((tables.counts.of(known), text.lines(rows, Names.of(columns))))
            return made

        def write(made: list[tuple[CountedSites, np.ndarray]]) -> None:
            for counted_sites, lines in made:
                tables.counts.add(counted_sites)
                file.write(lines)

        with TableWriter(write, sought.threads) as writer:
            writer.add(counts_and_lines, len(ranges), at_once=1)
        for table in siblings:
            table.write(tables.counts.table().encode())
