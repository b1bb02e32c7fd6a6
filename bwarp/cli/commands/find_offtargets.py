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
"""

from functools import partial

from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs
from bwarp.offtargets.find import find_sites, search_one_site, stretch_to_search
from bwarp.offtargets.guides import pam_left_on, parse_pam, read_guides
from bwarp.offtargets.hits import SiteOptions
from bwarp.offtargets.site_rows import read_features
from bwarp.offtargets.site_tables import open_site_tables, site_tables_at
from bwarp.options.finding import OFFTARGETS
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import progress, say
from bwarp.runtime.threads import run_together

EXAMPLES = """
bwarp offtargets --index genome.index --guides guides.fa -o sites.tsv
bwarp offtargets --index genome.index --guides guides.txt -o sites.tsv --pam NGG,NAG \\
    --mismatches 4 --dna-bulges 1 --rna-bulges 1 --annotation genes.gff3
bwarp offtargets --index genome.index --guides crispor_23mers.txt -o sites.tsv \\
    --guides-have-pam
bwarp offtargets --index genome.index --guides cas12a.fa -o sites.bed --pam TTTV \\
    --pam-side 5
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, OFFTARGETS)


def main(options):
    layout = layout_of(options)
    pam = parse_pam(options.pam, options.pam_side)
    if options.guides_have_pam and not pam.texts:
        raise UsageError("--guides-have-pam requires a PAM: use --pam, or omit --guides-have-pam")
    check_outputs(
        site_tables_at(options.output), [options.index, options.guides, options.annotation]
    )
    backend = choose_engine(options.backend)
    compile_first(backend, options, options.guides)
    guides = read_guides(options.guides, pam if options.guides_have_pam else None)
    if not options.guides_have_pam and (left_on := pam_left_on(guides, pam, "--guides-have-pam")):
        say(f"warning: {left_on}")
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
    features = read_features(options.annotation, reference) if options.annotation else None
    with (
        open_site_tables(
            options.output, layout, guides, pam, limits, reference, features, options.threads
        ) as tables,
        progress("base", reference.n_bases) as report,
    ):
        n_hits = 0
        for done, hits in find_sites(
            reference, guides, pam, limits, options.threads, backend, stretch
        ):
            tables.add(hits)
            n_hits += hits.count
            report(done, counted(n_hits, "site"))
    counts = tables.counts.sites
    say(
        f"{counted(guides.count, 'guide')} searched: {counted(tables.n_sites, 'site')}, "
        f"{int(counts[:, 0, 0].sum()):,} of them without mismatches or bulges"
    )


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
