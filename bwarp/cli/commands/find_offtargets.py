"""Find every site of CRISPR guides in a genome, with mismatches and bulges, and score them.

No site within the limits is missed. A site lies next to a PAM, and has one row with its best
alignment. OUT.tsv has the columns guide, guide_aligned, site_aligned, pam, contig, start, end,
strand, cut, mismatches, dna_bulge, rna_bulge, seed_mismatches, cfd and mit. Positions are 0-based;
start and end are those of the protospacer, without the PAM. In site_aligned, lower case marks a
mismatch and - a bulge. CFD and MIT scores are empty where they are not defined: for sites with
bulges, and for guides other than 20-base SpCas9 guides.

OUT.guides.tsv counts the sites of each guide by mismatches and kind of bulge, without a limit, and
lists its specificity on the scales of both scores: cfd_specificity from 0 to 1, and mit_specificity
from 0 to 100.

With --variants, the table also has the sites that variants make or change. More columns list the
variants of each site, its frequency, and its difference from the reference. OUT.unsearched.tsv
lists the variants that were not searched, with the reason.

With --genomes, the table also has the sites of other genomes. More columns list the genomes that
have each site. Sites are merged by their bases, or with --alignments by their positions.

--report also writes a web page: guides by rank, each with its worst sites.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file, check_outputs, is_standard_output
from bwarp.offtargets.alternative_sites import Sought
from bwarp.offtargets.find import find_sites, search_one_site, stretch_to_search
from bwarp.offtargets.genome_files import genome_names, read_genomes
from bwarp.offtargets.genome_tables import GenomeTables, open_genome_tables
from bwarp.offtargets.guide_design import GuideDesign
from bwarp.offtargets.guides import Guides, pam_left_on, parse_pam, read_guides
from bwarp.offtargets.hits import SiteOptions
from bwarp.offtargets.site_rows import read_features
from bwarp.offtargets.site_tables import SiteTables, open_site_tables, site_tables_at
from bwarp.offtargets.variant_tables import (
    VariantTables,
    open_variant_tables,
    variant_tables_at,
)
from bwarp.options.finding import OFFTARGETS
from bwarp.report.offtarget_page import offtarget_page
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import progress, say
from bwarp.runtime.threads import run_together
from bwarp.seeding.seed_tables import sibling
from bwarp.variants.populations import read_populations

EXAMPLES = """
bwarp offtargets --index genome.index --guides guides.fa -o sites.tsv
bwarp offtargets --index genome.index --guides guides.txt -o sites.tsv --pam NGG,NAG \\
    --mismatches 4 --dna-bulges 1 --rna-bulges 1 --annotation genes.gff3
bwarp offtargets --index genome.index --guides crispor_23mers.txt -o sites.tsv \\
    --guides-have-pam
bwarp offtargets --index genome.index --guides cas12a.fa -o sites.bed --pam TTTV \\
    --pam-side 5
bwarp offtargets --index genome.index --guides guides.fa -o sites.tsv --mismatches 4 \\
    --variants variants.vcf.gz --report sites.html
bwarp offtargets --index genome.index --guides guides.fa -o sites.tsv \\
    --genomes child.fa.gz mother.index --alignments child.paf.gz mother.chain.gz
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, OFFTARGETS)


def main(options):
    layout = layout_of(options)
    pam = parse_pam(options.pam, options.pam_side)
    if options.guides_have_pam and not pam.texts:
        raise UsageError("--guides-have-pam requires a PAM: use --pam, or omit --guides-have-pam")
    more_columns = "--variants" if options.variants else "--genomes" if options.genomes else ""
    if more_columns and layout != "tsv":
        raise UsageError(
            f"{more_columns} requires the columns of bwarp: use --format tsv, or an output that "
            "ends in .tsv or .tsv.gz"
        )
    if options.variants and options.genomes:
        raise UsageError("--genomes cannot be combined with --variants: run them separately")
    if options.alignments and not options.genomes:
        raise UsageError("--alignments requires --genomes")
    names = genome_names(options.genomes, options.alignments)
    if not options.variants and options.samples:
        raise UsageError("--samples requires --variants")
    if not options.variants and options.populations:
        raise UsageError("--populations requires --variants")
    if options.output == "-" and options.samples:
        raise UsageError("--samples writes a second file: use -o OUT.tsv instead of -o -")
    if not options.report and (options.report_sites or options.report_link):
        raise UsageError("--report-sites and --report-link require --report OUT.html")
    if options.report and (layout != "tsv" or not is_kept(options.output)):
        raise UsageError("--report requires a table of sites in a file: use -o OUT.tsv")
    outputs = site_tables_at(options.output)
    if options.variants:
        outputs = variant_tables_at(options.output, options.samples)
    inputs = [options.index, options.guides, options.annotation, options.populations]
    check_outputs(
        [*outputs, options.report],
        [*inputs, *options.variants, *options.genomes, *options.alignments],
    )
    backend = choose_engine(options.backend)
    compile_first(backend, options, options.guides, *options.genomes, *options.alignments)
    guides = read_guides(options.guides, pam if options.guides_have_pam else None)
    if not options.guides_have_pam and (left_on := pam_left_on(guides, pam, "--guides-have-pam")):
        say(f"warning: {left_on}")
    if options.part:
        guides = part_of_guides(guides, options)
    limits = SiteOptions(
        options.mismatches, options.dna_bulges, options.rna_bulges, options.all_alignments
    )
    stored = load_index(options.index)

    def prepare(engine):
        stretch = stretch_to_search(engine)
        if engine == "cuda":
            search_one_site(guides, pam, limits, engine)
        return stretch

    # The kernels are loaded while the genome is read.
    reference, (backend, stretch) = run_together(
        [lambda: stored.reference, partial(or_on_cpu, options.backend, backend, prepare, say)], 2
    )
    populations = read_populations(options.populations) if options.populations else None
    features = read_features(options.annotation, reference) if options.annotation else None
    sought = Sought(
        reference, guides, pam, limits, options.threads, backend, options.max_combinations
    )
    with tables_of(options, layout, sought, names, features) as tables:
        add_reference(tables, sought, stretch)
        if options.variants:
            tables.finish_reference()
            for path in dict.fromkeys(options.variants):
                add_variants(tables, path, populations)
        if options.genomes:
            tables.finish_reference()
            add_genomes(tables, options, sought, stretch)
    counts = tables.counts.sites
    say(
        f"{counted(guides.count, 'guide')} searched: {counted(tables.n_sites, 'site')}, "
        f"{int(counts[:, 0, 0].sum()):,} of them without mismatches or bulges"
    )
    if options.variants:
        say(
            f"{counted(tables.n_variants, 'variant')} searched: "
            f"{counted(tables.n_alternative, 'alternative site')}; "
            f"{counted(tables.n_unsearched, 'allele')} not searched"
        )
    if options.genomes:
        say(
            f"{counted(len(names), 'genome')} searched: "
            f"{counted(tables.n_alternative, 'alternative site')}"
        )
    if options.report:
        page = offtarget_page(
            options.output, sibling(options.output, "guides"), options.report_sites,
            options.report_link,
        )  # fmt: skip
        with atomic_file(options.report) as file:
            file.write(page.encode())


def part_of_guides(guides: Guides, options) -> Guides:
    """Return the part of the guides that is searched."""
    part, parts = options.part
    if guides.count < parts:
        raise InputError(
            f"{options.guides}: {counted(guides.count, 'guide')} cannot be cut into "
            f"{counted(parts, 'part')}: use fewer parts"
        )
    return guides.part(part, parts)


def is_kept(path: str) -> bool:
    """Return whether an output can be read once it is written: no pipe, and no device."""
    return not is_standard_output(path) and (os.path.isfile(path) or not os.path.exists(path))


@contextmanager
def tables_of(
    options, layout: str, sought: Sought, names: tuple[str, ...], features
) -> Iterator[SiteTables | VariantTables | GenomeTables]:
    """Open the tables of a search, with or without variants or genomes."""
    if options.variants:
        opened = open_variant_tables(options.output, sought, features, options.samples)
    elif options.genomes:
        opened = open_genome_tables(options.output, sought, names, features)
    else:
        opened = open_site_tables(
            options.output, layout, sought.guides, sought.pam, sought.options, sought.reference,
            features, options.threads,
        )  # fmt: skip
    with opened as tables:
        yield tables


def add_reference(
    tables: SiteTables | VariantTables | GenomeTables | GuideDesign, sought: Sought, stretch: int
) -> None:
    """Search the reference."""
    with progress("base", sought.reference.n_bases) as report:
        n_hits = 0
        for done, hits in find_sites(
            sought.reference, sought.guides, sought.pam, sought.options, sought.threads,
            sought.backend, stretch,
        ):  # fmt: skip
            tables.add(hits)
            n_hits += hits.count
            report(done, counted(n_hits, "site"))


def add_variants(
    tables: VariantTables,
    path: str | os.PathLike,
    populations: dict[str, list[str]] | None = None,
) -> None:
    """Search the variants of a file, and count the populations of its samples."""
    with progress("variant") as report:

        def show() -> None:
            report(tables.n_variants, counted(tables.n_alternative, "alternative site"))

        tables.add_file(path, populations, show)


def add_genomes(tables: GenomeTables, options, sought: Sought, stretch: int) -> None:
    """Search other genomes."""
    genomes = read_genomes(options.genomes, options.alignments, sought.reference, sought.threads)
    with progress("genome", len(options.genomes)) as report:
        for genome in genomes:
            if genome.alignments is not None and genome.alignments.skipped:
                say(
                    f"warning: {options.alignments[genome.number]}: "
                    f"{counted(genome.alignments.skipped, 'alignment')} not used, because the "
                    "genome or the reference has no such contig"
                )
            found = find_sites(
                genome.bases, sought.guides, sought.pam, sought.options, sought.threads,
                sought.backend, stretch,
            )  # fmt: skip
            tables.add_genome(genome, (hits for _, hits in found))
            report(genome.number + 1, counted(tables.n_alternative, "alternative site"))


def layout_of(options) -> str:
    """Return the column layout, chosen by --format or the ending of the output."""
    name = options.output.removesuffix(".gz")
    if options.format != "auto":
        return options.format
    if options.output == "-" or name.endswith(".tsv"):
        return "tsv"
    if name.endswith(".bed"):
        return "bed"
    raise UsageError(
        f"{options.output}: the output must end in .tsv, .bed, .tsv.gz or .bed.gz, unless --format "
        "is given"
    )
