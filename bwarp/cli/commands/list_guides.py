"""List the CRISPR guides of a sequence: every protospacer next to a PAM, on both strands.

Sequences come from a FASTA file or an index, either all or only the regions given by --region or
--bed. A guide is listed if it lies in a region together with its PAM and has no ambiguous base. Its
name is its position: chr20:1000-1020:+ is the protospacer from base 1000 to 1020, 0-based and
half-open as in the tables of bwarp offtargets, which accepts the output as --guides.
"""

import itertools

import numpy as np

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.io.bed_regions import read_regions
from bwarp.offtargets.guide_list import GuideFilter, list_guides, region_of
from bwarp.offtargets.guides import parse_pam
from bwarp.options.finding import GUIDES
from bwarp.reference import read_reference
from bwarp.runtime.progress import say
from bwarp.sequence import decode

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
    if options.min_gc > options.max_gc:
        raise UsageError(f"--min-gc {options.min_gc} is greater than --max-gc {options.max_gc}")
    pam = parse_pam(options.pam, options.pam_side)
    check_outputs([options.output], [options.fasta, options.index, options.bed])
    if options.index:
        reference = load_index(options.index).reference
    else:
        reference = read_reference(options.fasta, options.threads)
    regions = [region_of(text, reference) for text in options.region]
    if options.bed:
        regions += read_regions(options.bed, reference)
    if not options.region and not options.bed:
        starts = reference.contig_starts.tolist()
        regions = [(start, stop) for start, stop in itertools.pairwise(starts) if start < stop]
    wanted = GuideFilter(options.min_gc, options.max_gc, options.without_tttt)
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
    if guides.count == 0:
        return
    contig = int(reference.contig_of(guides.starts[:1])[0])
    name, begin = reference.names[contig], int(reference.contig_starts[contig])
    length, width = guides.codes.shape[1], guides.pams.shape[1]
    sequences = decode(np.ascontiguousarray(guides.codes).ravel()).decode()
    pams = decode(np.ascontiguousarray(guides.pams).ravel()).decode()
    lines = []
    for i, (start, strand) in enumerate(zip(guides.starts, guides.strands, strict=True)):
        at = int(start) - begin
        sequence = sequences[i * length : (i + 1) * length]
        named = f"{name}:{at}-{at + length}:{'+-'[strand]}"
        if as_lines:
            lines.append(f"{named}\t{sequence}\n")
        else:
            pam = pams[i * width :][: guides.pam_lengths[i]]
            lines.append(f">{named} {pam}".rstrip() + f"\n{sequence}\n")
    file.write("".join(lines))
