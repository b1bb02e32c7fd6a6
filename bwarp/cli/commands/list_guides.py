"""List the CRISPR guides of a sequence: every protospacer next to a PAM, on both strands.

Sequences come from a FASTA file or an index, either all or only the regions given by --region or
--bed. A guide is listed if it lies in a region together with its PAM and has no ambiguous base. Its
name is its position: chr20:1000-1020:+ is the protospacer from base 1000 to 1020, 0-based and
half-open as in the tables of bwarp offtargets, which accepts the output as --guides.
"""

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.offtargets.guide_list import GuideFilter, guide_rows, list_guides, regions_of
from bwarp.offtargets.guides import parse_pam
from bwarp.options.finding import GUIDES
from bwarp.reference import read_reference
from bwarp.runtime.progress import say

EXAMPLES = """
bwarp guides --fasta gene.fa -o guides.fa
bwarp guides --index genome.index --region chr20:1,000,001-1,010,000 -o guides.fa \\
    --min-gc 30 --max-gc 80 --without-tttt
bwarp guides --index genome.index --bed exons.bed -o guides.txt --pam TTTV --pam-side 5 \\
    --length 23
"""

#: Endings of tables without a header; all others mean FASTA.
TABLES = (".txt", ".tsv")


def parse_options():
    return program_parser(__doc__, EXAMPLES, GUIDES)


def main(options):
    if (options.fasta is None) == (options.index is None):
        raise UsageError("use either --fasta or --index")
    wanted = GuideFilter(options.min_gc, options.max_gc, options.without_tttt)
    pam = parse_pam(options.pam, options.pam_side)
    check_outputs([options.output], [options.fasta, options.index, options.bed])
    if options.index:
        reference = load_index(options.index).reference
    else:
        reference = read_reference(options.fasta, options.threads)
    regions = regions_of(reference, options.region, options.bed)
    as_lines = options.output.removesuffix(".gz").endswith(TABLES)
    n_guides = 0
    with atomic_file(options.output, "w") as file:
        for guides in list_guides(reference, regions, pam, options.length, wanted):
            write(file, guides, reference, as_lines)
            n_guides += guides.count
    if n_guides == 0:
        say("warning: no guide was found")
    say(f"{counted(n_guides, 'guide')} of {counted(options.length, 'base')} listed")


def write(file, guides, reference, as_lines: bool) -> None:
    for name, sequence, pam in guide_rows(guides, reference):
        head = f"{name}\t" if as_lines else f">{name} {pam}".rstrip() + "\n"
        file.write(f"{head}{sequence}\n")
