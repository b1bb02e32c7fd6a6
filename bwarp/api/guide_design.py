"""bwarp.design_guides and bwarp.pair_nickases: the tables of bwarp guides --specificity."""

import os
import tempfile
from collections.abc import Sequence

import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_of
from bwarp.api.sequences import check_files, listed
from bwarp.api.tables import frame_of
from bwarp.errors import UsageError
from bwarp.io.bed_regions import read_regions
from bwarp.offtargets.find import find_sites, stretch_to_search
from bwarp.offtargets.guide_design import GuideDesign, sought_guides
from bwarp.offtargets.guide_list import (
    GuideFilter,
    chosen_regions,
    guides_outside,
    joined_guides,
    list_guides,
)
from bwarp.offtargets.guides import parse_pam
from bwarp.offtargets.hits import SiteOptions
from bwarp.offtargets.nickases import nickase_pairs
from bwarp.offtargets.site_rows import read_features
from bwarp.offtargets.variant_tables import VariantTables
from bwarp.options.finding import GUIDES

Path = str | os.PathLike


def design_guides(
    index: Index | Path,
    *,
    region: str | Sequence[str] | None = None,
    bed: Path | None = None,
    exclude: Path | None = None,
    pam: str = "NGG",
    pam_side: int = 3,
    length: int = 20,
    min_gc: int = 0,
    max_gc: int = 100,
    without_tttt: bool = False,
    mismatches: int = 3,
    dna_bulges: int = 0,
    rna_bulges: int = 0,
    annotation: Path | None = None,
    variants: Path | Sequence[Path] | None = None,
    max_combinations: int = 1024,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """List the CRISPR guides of regions with their specificity in the whole genome, best first.

    Parameters
    ----------
    index : Index, or the folder of one
    region : str or sequence of str, optional
        Regions such as "chr20:1,001-2,000", 1-based and inclusive; by default the whole genome.
    bed, exclude : path, optional
        BED files of further regions, and of regions that guides must not overlap.
    pam : str, default: "NGG"
        PAM in IUPAC letters, several separated by commas, or "none".
    pam_side : {3, 5}
        End of the protospacer at which the PAM lies.
    length : int, default: 20
        Length of a guide, 15 to 40.
    min_gc, max_gc : int
        Minimum and maximum percentage of C and G in a guide.
    without_tttt : bool, default: False
        Leave out guides with four T in a row.
    mismatches : int, default: 3
        Maximum number of mismatches of a site, 0 to 6.
    dna_bulges, rna_bulges : int, default: 0
        Maximum number of bases in bulges of a site, 0 to 2.
    annotation : path, optional
        BED, GFF3 or GTF file: off-targets that overlap its features are counted.
    variants : path or sequence of path, optional
        VCF or BCF files: the sites that variants make or change are also searched.
    max_combinations : int, default: 1024
        Maximum number of combinations of unphased variants that start with the same variant.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    guides : DataFrame
        Columns and rows of OUT.tsv of bwarp guides --specificity, in the same order. Scores and
        frequencies are NaN where they are not defined, and `target_lost` is -1.
    """
    searched = parse_pam(pam, GUIDES["pam_side"].check(pam_side))
    wanted = GuideFilter(
        GUIDES["min_gc"].check(min_gc), GUIDES["max_gc"].check(max_gc), without_tttt
    )
    length = GUIDES["length"].check(length)
    limits = SiteOptions(
        GUIDES["mismatches"].check(mismatches),
        GUIDES["dna_bulges"].check(dna_bulges),
        GUIDES["rna_bulges"].check(rna_bulges),
    )
    max_combinations = GUIDES["max_combinations"].check(max_combinations)
    threads = threads_or_all(threads)
    check_files(bed, exclude, annotation, *listed(variants))
    reference = arrays_of(index).reference
    regions = chosen_regions(listed(region), bed, reference)
    excluded = read_regions(exclude, reference) if exclude is not None else []
    found = joined_guides(list(list_guides(reference, regions, searched, length, wanted)))
    guide_list = guides_outside(found, excluded, searched.side)
    features = read_features(annotation, reference) if annotation is not None else None
    engine, stretch = prepared(backend, stretch_to_search)
    sought = sought_guides(
        guide_list, reference, searched, limits, threads, engine, max_combinations
    )
    design = GuideDesign(guide_list, sought, features)
    if guide_list.count:
        with tempfile.TemporaryDirectory() as folder:
            tables = VariantTables(sought, folder) if variants is not None else None
            collected = design if tables is None else tables
            for _, hits in find_sites(*sought[:6], stretch):
                collected.add(hits)
            if tables is not None:
                tables.finish_reference()
                for path in dict.fromkeys(listed(variants)):
                    tables.add_file(path)
                design.add_tables(tables)
    ranked = frame_of(design.columns()).iloc[design.ranks()]
    return ranked.reset_index(drop=True)


def pair_nickases(
    guides: pd.DataFrame, *, min_offset: int = -4, max_offset: int = 20
) -> pd.DataFrame:
    """Pair guides on opposite strands with their PAMs at the outer ends, the best pair first.

    Parameters
    ----------
    guides : DataFrame
        From `design_guides`, or `read_table` of its file, with PAMs at the 3' ends.
    min_offset, max_offset : int
        Minimum and maximum number of bases between the 5' ends of a pair; negative if they overlap.

    Returns
    -------
    pairs : DataFrame
        Columns and rows of OUT.nickases.tsv of bwarp guides --nickases.
    """
    limits = GUIDES["min_offset"].check(min_offset), GUIDES["max_offset"].check(max_offset)
    needed = {"guide", "contig", "start", "end", "strand", "cfd_specificity", "mit_specificity"}
    missing = needed - set(getattr(guides, "columns", ()))
    if missing:
        raise UsageError(
            f"the guides have no column {min(missing)}: give the result of bwarp.design_guides"
        )
    return frame_of(nickase_pairs(guides, *limits))
