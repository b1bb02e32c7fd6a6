"""Options of the search programs: seeds, offtargets, guides, primers, mems and scan."""

import re

from bwarp.errors import UsageError
from bwarp.options.common import (
    CHUNK,
    GPUS,
    INDEX_FOLDER,
    ON_STDIN,
    PARTS,
    SPREAD,
    output,
    parse_part,
    sequence_file,
)
from bwarp.options.option import (
    CONFIGURATION,
    PROGRAM,
    File,
    OneOf,
    Option,
    Task,
    Text,
    Whole,
    yes_no,
)
from bwarp.options.scores import score_options

_QUERIES = sequence_file(
    "queries", "Q.fa", "DNA or RNA: FASTA or FASTQ, plain or compressed", required=True,
    in_program=ON_STDIN,
)  # fmt: skip

_TABLE = output(
    "OUT",
    "table to write: .tsv, .bed (both also .gz) or .parquet, chosen by the ending; - writes TSV to "
    "standard output",
)

#: Bounds of k: shorter k-mers hit everywhere, longer ones do not fit in two words.
SHORTEST_KMER, LONGEST_KMER = 8, 64

#: Maximum number of substitutions that a search allows.
MOST_MISMATCHES = 4

#: Longest PAM; the window of the genome read around a site has a fixed size.
LONGEST_PAM = 16

_IUPAC = f"[ACGTURYSWKMBDHVNacgturyswkmbdhvn]{{1,{LONGEST_PAM}}}"
_PAMS = f"{_IUPAC}(,{_IUPAC})*"
_PAM_SIDE = Option(
    "pam_side",
    OneOf((3, 5)),
    "end of the protospacer or site at which the PAM lies",
    3,
)
_PAM = Option(
    "pam",
    Text(
        "PAM", "a PAM of IUPAC letters such as NGG, several separated by commas, or none",
        f"^({_PAMS}|none)$",
    ),
    "PAM in IUPAC letters, several separated by commas, or `none`", "NGG",
)  # fmt: skip

_CHUNKS_IN_WORKFLOW = (
    ". The index in chunks is built once, and distributed over the GPUs if a job has several"
)

SEEDS = Task({"": (
    INDEX_FOLDER,
    _QUERIES,
    _TABLE,
    Option(
        "k", Whole(SHORTEST_KMER, LONGEST_KMER, word="whole", metavar="K"),
        f"cut queries into k-mers of this length, {SHORTEST_KMER} to {LONGEST_KMER}; `whole` "
        "searches every query as it is",
    ),
    Option(
        "step", Whole(1, 10**9), "with `-k`: bases between the starts of consecutive k-mers",
        unset="1",
    ),
    Option(
        "mismatches", Whole(0, MOST_MISMATCHES),
        f"maximum number of substitutions in a hit, 0 to {MOST_MISMATCHES}", 0, short="-v",
        in_workflow=". From 1 on the reverse BWT is added to the index first (docs/fm-index.md)",
    ),
    Option(
        "max_hits", Whole(0, 2**32, note="no limit"),
        "k-mers with more hits, both strands together, are listed in .over.tsv instead; 0: no "
        "limit",
        128, short="-m",
    ),
    Option(
        "locate", OneOf(("auto", "gpu", "hybrid", "cpu")),
        "how SA rows are converted to positions; `hybrid`: LF steps on the GPU, look-up on the "
        "CPU. The results are the same", "auto",
    ),
    Option(
        "algorithm", OneOf(("schemes", "backtracking")),
        "how to search with mismatches: by bidirectional search `schemes`, or by the bounded "
        "`backtracking` of Liu and Schmidt. The hits are the same, but `backtracking` stops above "
        "the maximum number of hits and does not count the rest", "schemes",
    ),
    yes_no(
        "count_only",
        "write only the number of hits per k-mer, without a limit: query, kmer_start, hits",
        only=PROGRAM,
    ),
    Option(
        "pam",
        Text(
            "PAM", "a PAM of IUPAC letters such as NGG, or several separated by commas",
            f"^{_PAMS}$",
        ),
        "find only sites next to a PAM in IUPAC letters; several are separated by commas",
    ),
    _PAM_SIDE,
    yes_no("site_sequence", "add a column site: the bases of the hit, on its strand"),
    Option(
        "chunk_bases", CHUNK,
        "search the reference in chunks of this many bases: for references whose index fits on "
        "several GPUs but not on one. The results are the same",
        only=CONFIGURATION,
        in_workflow=_CHUNKS_IN_WORKFLOW,
    ),
    SPREAD,
    PARTS,
    GPUS,
)})  # fmt: skip

#: Minimum and maximum length of a guide.
SHORTEST_GUIDE, LONGEST_GUIDE = 15, 40

#: Maximum number of bases in DNA bulges, and in RNA bulges, of a site.
BULGES_EACH = 2


def _address(text: str) -> str:
    """Check an address with {contig}, {start} and {end}."""
    names = set(re.findall(r"\{(\w*)\}", text))
    if re.match("https?://", text) and "contig" in names <= {"contig", "start", "end"}:
        return text
    raise UsageError(
        f"{text!r} is not an address with {{contig}}, {{start}} and {{end}}: write one such as "
        "https://igv.org/app/?genome=hg38&locus={contig}:{start}-{end}"
    )


OFFTARGETS = Task({"": (
    INDEX_FOLDER,
    Option(
        "guides", File("G.fa", "a file of guides, such as config/examples/crispr_guides.fa"),
        f"guides of {SHORTEST_GUIDE} to {LONGEST_GUIDE} bases without their PAMs: FASTA, or lines "
        "of a name and a sequence, or of a sequence alone", required=True, in_program=ON_STDIN,
    ),
    output("OUT.tsv", "table to write, also .gz; - is standard output"),
    _PAM,
    _PAM_SIDE,
    yes_no(
        "guides_have_pam",
        "remove the PAM from the guides first: CRISPOR, for example, exports guides with it",
    ),
    # With more, most sites of a genome would match guides of 20 bases.
    Option(
        "mismatches", Whole(0, 6), "maximum number of mismatches per site, 0 to 6", 3, short="-v",
    ),
    Option(
        "dna_bulges", Whole(0, BULGES_EACH),
        f"maximum number of bases in the site that are missing in the guide, 0 to {BULGES_EACH}", 0,
    ),
    Option(
        "rna_bulges", Whole(0, BULGES_EACH),
        f"maximum number of bases in the guide that are missing in the site, 0 to {BULGES_EACH}", 0,
    ),
    yes_no(
        "all_alignments",
        "write a row for every alignment of a site, best first, instead of only the best",
    ),
    Option(
        "format", OneOf(("auto", "tsv", "bed", "cas-offinder", "crispor")),
        "columns to write; `auto`: by the ending of the output; `tsv`: those of bwarp; "
        "`cas-offinder`, `crispor`: those of these programs", "auto",
    ),
    Option(
        "annotation", File("A.bed|A.gff", "a BED, GFF3 or GTF file, plain or gz"),
        "features in BED, GFF3 or GTF; a column lists those that overlap a site",
    ),
    Option(
        "variants", File("V.vcf.gz", "a VCF or BCF file, sorted"),
        "VCF or BCF: also find the sites that variants make or change; phased genotypes give "
        "the haplotypes. Several files must have different contigs", many=True,
    ),
    Option(
        "max_combinations", Whole(1, 10**6),
        "with `--variants`: maximum number of combinations of unphased variants that start with "
        "the same variant; if there are more, those with the fewest variants are searched, and "
        "the variant is listed in .unsearched.tsv", 1024,
    ),
    Option(
        "populations", File("SAMPLES.tsv", "a table of samples and populations"),
        "with `--variants`: table with a sample and its population per line; the column "
        "populations then has the share of haplotypes of each population, from the genotypes "
        "instead of INFO",
    ),
    yes_no(
        "samples", "with `--variants`: write the samples of each alternative site to .samples.tsv",
        only=PROGRAM,
    ),
    Option(
        "genomes", File("A.fa", "a FASTA file"),
        "other genomes, as FASTA files (plain or compressed) or indexes: also find their sites; "
        "not with `--variants`",
        many=True, in_workflow="; here without indexes",
    ),
    Option(
        "alignments", File("A.paf", "a PAF or chain file"),
        "with `--genomes`: alignments of each genome to the reference, in the same order: PAF "
        "with CIGARs, or chain files; they give the positions of sites in the reference",
        many=True,
    ),
    Option(
        "part", Text("K/N", parse=parse_part),
        "search only the K-th of N parts of the guides; `bwarp merge-tables` joins their tables",
        only=PROGRAM,
    ),
    PARTS,
), "report": (
    Option(
        "report", Text("OUT.html"),
        "also write a web page: guides by rank, each with its worst sites", only=PROGRAM,
    ),
    Option(
        "report_sites", Whole(1, 10**5),
        "maximum number of sites of each kind per guide in the report: with or without a CFD "
        "score, of the reference or alternative",
        unset="25, or fewer with more than 200 guides",
    ),
    Option(
        "report_link",
        Text(
            "ADDRESS", "an address with {contig}, {start} and {end}, such as "
            "https://igv.org/app/?genome=hg38&locus={contig}:{start}-{end}",
            "^https?://.*[{]contig[}]", _address,
        ),
        "address of a genome browser to which the report links positions, with {contig}, {start} "
        "and {end} for the 1-based position",
        unset="no links",
    ),
)})  # fmt: skip

#: The group of options that only apply to a table of guides with their off-targets.
DESIGN = "design, with --specificity"

GUIDES = Task({"": (
    sequence_file(
        "fasta", "F.fa", "sequences to list guides from", in_program=ON_STDIN, only=PROGRAM
    ),
    INDEX_FOLDER._replace(required=False),
    Option(
        "region", Text("REGION"),
        "contig, or contig:from-to, 1-based and inclusive as in samtools", many=True,
        only=PROGRAM,
    ),
    Option(
        "bed",
        File("R.bed", "a BED file of regions, such as config/examples/guide_regions.bed"),
        "BED file of regions", required=CONFIGURATION,
    ),
    output(
        "OUT.fa",
        "file to write: a name and a sequence per line for .txt or .tsv, else FASTA; - writes "
        "FASTA to standard output. With `--specificity`: a table, .tsv or .tsv.gz",
    ),
    _PAM,
    _PAM_SIDE,
    Option(
        "length", Whole(SHORTEST_GUIDE, LONGEST_GUIDE),
        f"length of a guide, {SHORTEST_GUIDE} to {LONGEST_GUIDE}", 20,
    ),
    Option("min_gc", Whole(0, 100), "minimum percentage of C and G in a guide", 0),
    Option("max_gc", Whole(0, 100), "maximum percentage of C and G in a guide", 100),
    yes_no(
        "without_tttt",
        "leave out guides with four T in a row, which end transcription from U6 promoters",
    ),
    Option(
        "exclude", File("X.bed", "a BED file"),
        "BED file of regions: leave out guides that overlap them, with their PAMs",
    ),
    yes_no(
        "specificity",
        "search the off-targets of each guide in the index, and write a table of the guides, best "
        "first", only=PROGRAM,
    ),
), DESIGN: (
    *OFFTARGETS.only(
        "mismatches", "dna_bulges", "rna_bulges", "annotation", "variants", "max_combinations",
    ),
    yes_no(
        "nickases",
        "also write .nickases.tsv: pairs of guides on opposite strands with their PAMs at the "
        "outer ends",
    ),
    Option(
        "min_offset", Whole(-LONGEST_GUIDE, 1000),
        "with `--nickases`: minimum number of bases between the 5' ends of a pair; negative if "
        "they overlap", -4,
    ),
    Option(
        "max_offset", Whole(-LONGEST_GUIDE, 1000),
        "with `--nickases`: maximum number of bases between the 5' ends of a pair", 20,
    ),
)})  # fmt: skip

PRIMERS = Task({"": (
    INDEX_FOLDER,
    Option(
        "pairs",
        File("PAIRS.tsv", "a table of primer pairs, such as config/examples/primer_pairs.tsv"),
        "primer pairs, one per line: name, forward and reverse primer, 5' to 3', IUPAC",
        required=True,
        in_program=ON_STDIN,
    ),
    output(
        "OUT",
        "file to write: .tsv, .bed or .fa (also .gz) by the ending; - writes TSV to standard "
        "output",
    ),
    Option(
        "mismatches", Whole(0, MOST_MISMATCHES),
        f"maximum number of mismatches per primer, 0 to {MOST_MISMATCHES}", 2, short="-v",
    ),
    Option(
        "last", Whole(0, LONGEST_KMER),
        "number of bases at the 3' end of a primer that must match exactly, as isPcr's "
        "-minPerfect; 0 as in primersearch", 15,
    ),
    Option("min_product", Whole(1, 10**9), "minimum length of a product", 1),
    Option("max_product", Whole(1, 10**9), "maximum length of a product, as in isPcr", 4000),
    yes_no("with_itself", "also find products of the forward or the reverse primer with itself"),
)})  # fmt: skip

MEMS = Task({"": (
    INDEX_FOLDER._replace(required=False),
    Option(
        "reference", File("REF.fa"),
        "FASTA, plain or compressed, instead of `--index`: for a single comparison of genomes, on "
        "the CPU", only=PROGRAM,
    ),
    _QUERIES._replace(help="reads, contigs or genomes: FASTA or FASTQ, plain or compressed"),
    output(
        "OUT.mums",
        "file to write: .tsv for a table, .paf for PAF, .parquet for Parquet, .mums (or no "
        "ending) for MUMmer's format; .gz compresses; - is standard output",
    ),
    Option("min_length", Whole(1, 2**31, metavar="L"), "minimum length of a match", 20, short="-l"),
    Option(
        "kind", OneOf(("maxmatch", "mumreference", "mum")),
        "`maxmatch`: all matches; `mumreference`: matches unique in the reference; `mum`: matches "
        "unique in the reference and in the strand of the query", "mumreference",
        in_workflow=". For unique ones the reverse BWT is added to the index first",
    ),
    Option(
        "strands", OneOf(("forward", "reverse", "both")), "strands of the queries to search",
        "forward",
    ),
    yes_no(
        "forward_positions",
        "report the position of a match on the reverse strand as that of its first base on the "
        "forward strand", short="-c",
    ),
    yes_no("four_column", "write the contig on every line, even if there is only one", short="-F"),
    yes_no("show_lengths", "write the length of each query on its header line", short="-L"),
    Option(
        "chunk_bases", CHUNK,
        "search the reference in chunks of this many bases: for references whose index exceeds "
        "the memory of the host or the GPU. The results are the same",
        in_program=". Every run indexes the chunks anew; `bwarp index --chunk-bases` stores their "
        "indexes",
        in_workflow=_CHUNKS_IN_WORKFLOW,
    ),
    SPREAD,
    PARTS,
    GPUS,
)})  # fmt: skip

SCAN = Task({"": (
    sequence_file("reference", "R.fa", required=True, only=PROGRAM),
    sequence_file("queries", "Q.fa", required=True),
    _TABLE,
    Option(
        "similarity",
        Text(
            "S", "a number above 0 and at most 1, such as 0.95 or 19/20", "^[0-9]+/[0-9]+$",
            also={"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        ),
        "minimum similarity of a hit, above 0 and at most 1, taken exactly: 0.95 or 19/20. It is 1 "
        "- D / length, where D is the sum over A, C, G and T of the differences between the counts "
        "of query and window", required=True,
    ),
    yes_no("regions", "join hits of a query at consecutive positions into regions"),
    Option(
        "best", Whole(1, 10**6),
        "write only the N most similar windows per query, ties by position",
        only=PROGRAM,
    ),
    yes_no("count_only", "write only the number of hits per query", only=PROGRAM),
    Option(
        "max_hits", Whole(0, 10**15),
        "stop if there are more hits than this; hits are counted first", 10**9,
    ),
    Option(
        "algorithm", OneOf(("auto", "classes", "tiles", "gather")),
        "`classes`: compare distinct compositions only; `tiles`: compare every window; `gather`: "
        "compare every window as published by Breland et al.; `auto` chooses the fastest. The "
        "results are the same", "auto",
    ),
    PARTS._replace(in_workflow=". `max_hits` applies to each part"),
), "alignment": (
    yes_no(
        "align",
        "scan both strands, and write alignments of the queries, best first, instead of windows: "
        "each whole query is aligned with each of its windows, extended on both sides by the "
        "maximum distance of a hit",
    ),
    Option(
        "min_score", Whole(-(2**30), 2**30), "with `--align`, minimum score of an alignment",
        unset="1", short="-T",
    ),
    Option(
        "top", Whole(1, 10**9), "with `--align`, maximum number of alignments per query",
        unset="all",
    ),
    *score_options(10_000, 10_000),
)})  # fmt: skip
