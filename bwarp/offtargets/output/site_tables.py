"""The tables of an off-target search: sites, and OUT.guides.tsv, what is counted of every guide."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bwarp.io.atomic_output import atomic_files, part_folder, real_path
from bwarp.offtargets.guides import Guides
from bwarp.offtargets.hits import SiteHits, SiteOptions
from bwarp.offtargets.output.annotation import Features
from bwarp.offtargets.output.by_guide import HitsByGuide
from bwarp.offtargets.output.guide_counts import GuideCounts
from bwarp.offtargets.output.site_rows import describe
from bwarp.offtargets.output.site_text import SiteText
from bwarp.offtargets.pam import Pam
from bwarp.reference import Reference
from bwarp.runtime.threads import in_order
from bwarp.seeding.output.seed_tables import sibling

__all__ = ["SiteTables", "open_site_tables", "site_tables_at"]


def site_tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """The files that a search with this output writes, the sites last."""
    return [path] if str(path) == "-" else [sibling(path, "guides"), path]


class SiteTables:
    """Hits on their way into open tables.

    Attributes
    ----------
    counts : GuideCounts
        Of what has been written.
    """

    def __init__(self, hits: HitsByGuide, counts: GuideCounts):
        self._hits = hits
        self.counts = counts

    def add(self, hits: SiteHits) -> None:
        """Take hits, which follow those taken before in the genome."""
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
    """Tables to write; they are written, and appear, when the block ends well.

    Sites are in the order of the guides, and by contig, start, end and strand. Many of them wait in
    files beside the output. Standard output (``-``) has no table of guides.
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
    """A folder for hits that wait: beside the output if that is a file."""
    output = real_path(path)
    if str(path) != "-" and (output.is_file() or not output.exists()):
        with part_folder(output.with_name(output.name + ".hits")) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)
