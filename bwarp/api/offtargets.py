"""bwarp.find_offtargets: every site of CRISPR guides, as bwarp offtargets finds them."""

import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_of
from bwarp.api.sequences import Sequences, check_files, given_sequences, is_file, listed
from bwarp.api.tables import frame, named, read_table
from bwarp.errors import InputError, UsageError
from bwarp.offtargets.alternative_sites import Sought
from bwarp.offtargets.find import find_sites, stretch_to_search
from bwarp.offtargets.genome_files import genome_names, read_genomes
from bwarp.offtargets.genome_tables import open_genome_tables
from bwarp.offtargets.guides import Guides, Pam, guides_of, pam_left_on, parse_pam, read_guides
from bwarp.offtargets.hits import SiteOptions, joined_hits, taken_hits
from bwarp.offtargets.site_rows import describe
from bwarp.offtargets.variant_tables import open_variant_tables
from bwarp.options.finding import OFFTARGETS
from bwarp.variants.populations import read_populations

#: One file, or several.
Files = str | os.PathLike | Sequence[str | os.PathLike]

SITES = (
    *("guide", "guide_aligned", "site_aligned", "pam", "contig", "start", "end", "strand", "cut"),
    *("mismatches", "dna_bulge", "rna_bulge", "seed_mismatches", "cfd", "mit"),
)


def find_offtargets(
    index: Index | str | os.PathLike,
    guides: Sequences,
    *,
    pam: str = "NGG",
    pam_side: int = 3,
    guides_have_pam: bool = False,
    mismatches: int = 3,
    dna_bulges: int = 0,
    rna_bulges: int = 0,
    variants: Files | None = None,
    max_combinations: int = 1024,
    populations: str | os.PathLike | None = None,
    genomes: Files | None = None,
    alignments: Files | None = None,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find every site of CRISPR guides, with scores; none within the limits is missed.

    Parameters
    ----------
    index : Index, or the folder of one
    guides : path, or sequences in memory
        15 to 40 bases each without their PAMs; files in the formats of bwarp offtargets.
    pam : str, default: "NGG"
        PAM in IUPAC letters, several separated by commas, or "none".
    pam_side : {3, 5}
        End of the protospacer at which the PAM lies.
    guides_have_pam : bool, default: False
        Remove the PAM from the guides first.
    mismatches : int, default: 3
        Maximum number of mismatches, 0 to 6.
    dna_bulges, rna_bulges : int, default: 0
        Maximum number of bases in the site that are missing in the guide, and the reverse, 0 to
        2.
    variants : path or list of paths, optional
        VCF or BCF: also find the sites that variants make or change.
    max_combinations : int, default: 1024
        Maximum number of combinations of unphased variants that start with the same
        variant.
    populations : path, optional
        With `variants`: table with a sample and its population per line.
    genomes : path or list of paths, optional
        FASTA files or indexes of other genomes: also find their sites.
    alignments : path or list of paths, optional
        PAF or chain files, one for each of `genomes`.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    sites : DataFrame
        Columns and rows of OUT.tsv of bwarp offtargets, in the same order. `cut` is -1
        without a PAM; `cfd` and `mit` are NaN where they are not defined. Empty cells of the
        columns of variants and genomes are NaN, -1 or "".
    """
    searched = parse_pam(OFFTARGETS["pam"].check(pam), OFFTARGETS["pam_side"].check(pam_side))
    limits = SiteOptions(
        OFFTARGETS["mismatches"].check(mismatches),
        OFFTARGETS["dna_bulges"].check(dna_bulges),
        OFFTARGETS["rna_bulges"].check(rna_bulges),
    )
    threads = threads_or_all(threads)
    if guides_have_pam and not searched.texts:
        raise UsageError("guides_have_pam=True requires a PAM: use pam, or omit guides_have_pam")
    given = _guides_of(guides, searched if guides_have_pam else None)
    if not guides_have_pam and (left_on := pam_left_on(given, searched, "guides_have_pam=True")):
        warnings.warn(left_on, stacklevel=2)
    if variants is not None and genomes is not None:
        raise UsageError("genomes cannot be combined with variants: search them separately")
    if populations is not None and variants is None:
        raise UsageError("populations requires variants")
    if alignments is not None and genomes is None:
        raise UsageError("alignments requires genomes")
    check_files(*listed(variants), *listed(alignments))
    check_files(*(path for path in listed(genomes) if not os.path.isdir(path)))  # else an index
    reference = arrays_of(index).reference
    engine, stretch = prepared(backend, stretch_to_search)
    most = OFFTARGETS["max_combinations"].check(max_combinations)
    sought = Sought(reference, given, searched, limits, threads, engine, most)
    if variants is not None:
        return _with_variants(sought, stretch, listed(variants), populations)
    if genomes is not None:
        return _with_genomes(sought, stretch, listed(genomes), listed(alignments))
    found = find_sites(reference, given, searched, limits, threads, engine, stretch)
    hits = joined_hits([hits for _, hits in found])
    order = np.lexsort((hits.strands, hits.lengths, hits.starts, hits.guides))
    hits = taken_hits(hits, order)
    rows = describe(hits, given, searched, reference)
    columns = (
        named(given.names, hits.guides),
        _texts(rows.guide_text, rows.widths),
        _texts(rows.site_text, rows.widths),
        _texts(rows.pams, rows.pam_lengths),
        named(reference.names, rows.contigs),
        rows.starts,
        rows.ends,
        named("+-", hits.strands),
        rows.cuts,
        hits.mismatches,
        hits.dna_bulges,
        hits.rna_bulges,
        rows.seed_mismatches,
        rows.cfd,
        rows.mit,
    )
    return frame(SITES, [columns])


def _with_variants(
    sought: Sought, stretch: int, paths: list, populations: str | os.PathLike | None
) -> pd.DataFrame:
    of_sample = read_populations(populations) if populations is not None else None
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "sites.tsv"
        with open_variant_tables(table, sought) as tables:
            for _, hits in find_sites(*sought[:6], stretch):
                tables.add(hits)
            tables.finish_reference()
            for path in dict.fromkeys(paths):
                tables.add_file(path, of_sample)
        return read_table(table)


def _with_genomes(sought: Sought, stretch: int, genomes: list, alignments: list) -> pd.DataFrame:
    names = genome_names(genomes, alignments)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "sites.tsv"
        with open_genome_tables(table, sought, names) as tables:
            for _, hits in find_sites(*sought[:6], stretch):
                tables.add(hits)
            tables.finish_reference()
            for genome in read_genomes(genomes, alignments, sought.reference, sought.threads):
                found = find_sites(genome.bases, *sought[1:6], stretch)
                tables.add_genome(genome, (hits for _, hits in found))
        return read_table(table)


def _guides_of(given: Sequences, pam: Pam | None) -> Guides:
    if is_file(given, "guides"):
        return read_guides(given, pam)
    names, sequences = [], []
    for item in given_sequences(given, "guides"):
        if not isinstance(item.sequence, str):
            raise InputError(
                f"{item.where} is of type {type(item.sequence).__name__}: a guide must be a str"
            )
        names.append(str(item.key))
        sequences.append(item.sequence)
    return guides_of(names, sequences, pam=pam)


def _texts(letters: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return rows of letters as strings of the given widths, dtype=object."""
    whole = np.ascontiguousarray(letters).tobytes().decode("latin-1")
    width = letters.shape[1] if letters.ndim == 2 else 0
    return np.array(
        [whole[i * width : i * width + n] for i, n in enumerate(widths.tolist())] + [""], object
    )[:-1]
