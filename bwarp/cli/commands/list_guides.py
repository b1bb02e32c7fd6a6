"""List the CRISPR guides of a sequence: every protospacer next to a PAM, on both strands.

Sequences come from a FASTA file or an index, either all or only the regions given by --region or
--bed. A guide is listed if it lies in a region together with its PAM and has no ambiguous base. Its
name is its position: chr20:1000-1020:+ is the protospacer from base 1000 to 1020, 0-based and
half-open as in the tables of bwarp offtargets, which accepts the output as --guides.

With --specificity, the output is a table of the guides, best first, with their specificities and
the number of their sites in the index by mismatches and bulges. With --variants, more columns
describe the variants in the target, and the worst off-target that variants make. --nickases also
writes OUT.nickases.tsv: pairs of guides for two nickases, best first.
"""

import numpy as np

from bwarp.cli.commands.find_offtargets import add_reference, add_variants
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file, atomic_files, check_outputs
from bwarp.io.bed_regions import read_regions
from bwarp.offtargets.find import search_one_site, stretch_to_search
from bwarp.offtargets.guide_design import GuideDesign, sought_guides, table_text
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
from bwarp.offtargets.site_tables import hits_folder
from bwarp.offtargets.variant_tables import VariantTables
from bwarp.options.finding import DESIGN, GUIDES
from bwarp.reference import read_reference
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import say
from bwarp.seeding.seed_tables import sibling

EXAMPLES = """
bwarp guides --fasta gene.fa -o guides.fa
bwarp guides --index genome.index --region chr20:1,000,001-1,010,000 -o guides.fa \\
    --min-gc 30 --max-gc 80 --without-tttt
bwarp guides --index genome.index --bed exons.bed -o guides.txt --pam TTTV --pam-side 5 \\
    --length 23
bwarp guides --index genome.index --region chr20:1,000,001-1,010,000 -o guides.tsv \\
    --specificity --mismatches 4 --variants variants.vcf.gz --nickases
"""

#: Endings of tables without a header; all others mean FASTA.
TABLES = (".txt", ".tsv")


def parse_options():
    return program_parser(__doc__, EXAMPLES, GUIDES)


def main(options):
    check_options(options)
    wanted = GuideFilter(options.min_gc, options.max_gc, options.without_tttt)
    pam = parse_pam(options.pam, options.pam_side)
    inputs = [options.fasta, options.index, options.bed, options.exclude, options.annotation]
    outputs = tables_at(options) if options.specificity else [options.output]
    check_outputs(outputs, [*inputs, *options.variants])
    if options.index:
        reference = load_index(options.index).reference
    else:
        reference = read_reference(options.fasta, options.threads)
    regions = chosen_regions(options.region, options.bed, reference)
    excluded = read_regions(options.exclude, reference) if options.exclude else []
    n_guides = n_excluded = 0

    def kept_guides():
        nonlocal n_guides, n_excluded
        for guides in list_guides(reference, regions, pam, options.length, wanted):
            kept = guides_outside(guides, excluded, pam.side)
            n_guides += kept.count
            n_excluded += guides.count - kept.count
            yield kept

    if options.specificity:
        design(joined_guides(list(kept_guides())), reference, pam, outputs, options)
    else:
        as_lines = options.output.removesuffix(".gz").endswith(TABLES)
        with atomic_file(options.output, "w") as file:
            for guides in kept_guides():
                write(file, guides, reference, as_lines)
    if n_guides == 0:
        say("warning: no guide was found")
    left_out = f"; {n_excluded:,} left out (--exclude)" if options.exclude else ""
    say(f"{counted(n_guides, 'guide')} of {counted(options.length, 'base')} listed{left_out}")


def check_options(options) -> None:
    """Raise an error if options contradict each other."""
    if (options.fasta is None) == (options.index is None):
        raise UsageError("use either --fasta or --index")
    if not options.specificity:
        for option in GUIDES.groups[DESIGN]:
            if getattr(options, option.name) not in (option.default, []):
                raise UsageError(f"{option.flags[-1]} requires --specificity")
        return
    if options.index is None:
        raise UsageError("--specificity requires --index: run bwarp index on the genome first")
    if options.output != "-" and not options.output.removesuffix(".gz").endswith(".tsv"):
        raise UsageError(
            f"{options.output}: --specificity writes a table: the output must end in .tsv or "
            ".tsv.gz"
        )
    if options.nickases and options.output == "-":
        raise UsageError("--nickases writes a second file: use -o OUT.tsv instead of -o -")
    if options.nickases and options.pam_side == 5:
        raise UsageError("--nickases requires a PAM at the 3' end: use --pam-side 3")
    if options.min_offset > options.max_offset:
        raise UsageError(
            f"--min-offset {options.min_offset} is greater than --max-offset {options.max_offset}"
        )


def tables_at(options) -> list:
    """Return the files that a design writes, the guides last."""
    if options.output == "-":
        return ["-"]
    kinds = ["unsearched"] * bool(options.variants) + ["nickases"] * options.nickases
    return [*(sibling(options.output, kind) for kind in kinds), options.output]


def design(listed, reference, pam, outputs, options) -> None:
    """Search the off-targets of guides, and write the tables."""
    backend = choose_engine(options.backend)
    compile_first(backend, options)
    limits = SiteOptions(options.mismatches, options.dna_bulges, options.rna_bulges)

    def prepare(engine):
        stretch = stretch_to_search(engine)
        if engine == "cuda" and listed.count:
            search_one_site(sought.guides, pam, limits, engine)
        return stretch

    sought = sought_guides(listed, reference, pam, limits, options.threads)
    backend, stretch = or_on_cpu(options.backend, backend, prepare, say)
    sought = sought._replace(backend=backend, combinations=options.max_combinations)
    features = read_features(options.annotation, reference) if options.annotation else None
    found = GuideDesign(listed, sought, features)
    with (
        atomic_files(outputs, threads=options.threads) as files,
        hits_folder(options.output) as folder,
    ):
        tables = VariantTables(sought, folder) if options.variants else None
        if listed.count:
            search(found, tables, sought, stretch, options.variants)
        columns = found.columns()
        texts = [table_text(columns, found.ranks())]
        if options.nickases:
            offsets = options.min_offset, options.max_offset
            pairs = nickase_pairs(columns, *offsets)
            n_pairs = len(pairs["left"])
            texts.insert(0, table_text(pairs, np.arange(n_pairs)))
            say(f"{counted(n_pairs, 'pair of guides')} listed")
        if tables is not None:
            texts.insert(0, tables.unsearched_text())
        # Standard output has only the last table.
        for file, text in zip(files, texts[-len(files) :], strict=True):
            file.write(text)


def search(found, tables, sought, stretch, variants) -> None:
    """Search the sites of all guides, and of variants."""
    add_reference(found if tables is None else tables, sought, stretch)
    if tables is not None:
        tables.finish_reference()
        for path in dict.fromkeys(variants):
            add_variants(tables, path)
        found.add_tables(tables)


def write(file, guides, reference, as_lines: bool) -> None:
    columns = guides.names(reference), guides.sequences(), guides.pam_texts()
    for name, sequence, pam in zip(*columns, strict=True):
        if as_lines:
            file.write(f"{name}\t{sequence}\n")
        else:
            file.write(f">{name} {pam}".rstrip() + f"\n{sequence}\n")
