"""Options of searches for all of something: seeds, offtargets, guides, primers, mems, scan."""

from bwarp.options.common import GPUS, INDEX_FOLDER, ON_STDIN, PARTS, output, sequence_file
from bwarp.options.option import PROGRAM, File, OneOf, Option, Task, Text, Whole, yes_no

_QUERIES = sequence_file(
    "queries", "Q.fa", "DNA or RNA: FASTA or FASTQ, plain or compressed", required=True,
    in_program=ON_STDIN,
)  # fmt: skip

_TABLE = output(
    "OUT",
    "table to write: .tsv, .bed (both also .gz) or .parquet by its ending; - is TSV on standard "
    "output",
)

#: Bases of a k-mer: fewer have hits everywhere, more do not fit in two words.
SHORTEST_KMER, LONGEST_KMER = 8, 64

#: Substitutions that a search allows.
MOST_MISMATCHES = 4

#: More is no PAM; and what is read of the genome around a site has a fixed size.
LONGEST_PAM = 16

_IUPAC = f"[ACGTURYSWKMBDHVNacgturyswkmbdhvn]{{1,{LONGEST_PAM}}}"
_PAMS = f"{_IUPAC}(,{_IUPAC})*"
_PAM_SIDE = Option(
    "pam_side",
    OneOf((3, 5)),
    "end of the protospacer or site that the PAM is at",
    3,
)
_PAM = Option(
    "pam",
    Text(
        "PAM", "a PAM of IUPAC letters such as NGG, several with commas between them, or none",
        f"^({_PAMS}|none)$",
    ),
    "PAM, IUPAC; several with commas between them, or `none`", "NGG",
)  # fmt: skip

SEEDS = Task({"": (
    INDEX_FOLDER,
    _QUERIES,
    _TABLE,
    Option(
        "k", Whole(SHORTEST_KMER, LONGEST_KMER, word="whole", metavar="K"),
        f"cut queries into k-mers of this length, {SHORTEST_KMER} to {LONGEST_KMER}; `whole` "
        "searches every query as it is",
    ),
    Option("step", Whole(1, 10**9), "with `-k`: bases between the starts of two k-mers", unset="1"),
    Option(
        "mismatches", Whole(0, MOST_MISMATCHES),
        f"maximum number of substitutions in a hit, 0 to {MOST_MISMATCHES}", 0, short="-v",
        in_workflow=". From 1 on the reverse BWT is added to the index first (docs/fm-index.md)",
    ),
    Option(
        "max_hits", Whole(0, 2**32, note="no limit"),
        "list a k-mer with more hits on both strands together in .over.tsv instead; 0: no limit",
        128, short="-m",
    ),
    Option(
        "locate", OneOf(("auto", "gpu", "hybrid", "cpu")),
        "where SA rows are turned into positions; `hybrid`: LF steps on the GPU, look-up on the "
        "CPU. The results are the same", "auto",
    ),
    Option(
        "algorithm", OneOf(("schemes", "backtracking")),
        "how mismatches are searched: by bidirectional search `schemes`, or by the bounded "
        "`backtracking` of Liu and Schmidt. The results are the same", "schemes",
    ),
    yes_no(
        "count_only",
        "write only how many hits every k-mer has, whatever the limit: query, kmer_start, hits",
        only=PROGRAM,
    ),
    Option(
        "pam",
        Text(
            "PAM", "a PAM of IUPAC letters such as NGG, or several with commas between them",
            f"^{_PAMS}$",
        ),
        "find only sites beside a PAM: IUPAC, several with commas between them",
    ),
    _PAM_SIDE,
    yes_no("site_sequence", "write one column more, site: the bases of the hit, on its strand"),
    PARTS,
    GPUS,
)})  # fmt: skip

#: Bases of a guide.
SHORTEST_GUIDE, LONGEST_GUIDE = 15, 40

#: Bases that DNA bulges, and RNA bulges, of a site may have at most.
BULGES_EACH = 2

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
        "cut the PAM off the guides first: CRISPOR, for example, exports them with it",
    ),
    # More would be most of a genome's sites for guides of 20 bases.
    Option(
        "mismatches", Whole(0, 6), "maximum number of mismatches of a site, 0 to 6", 3, short="-v",
    ),
    Option(
        "dna_bulges", Whole(0, BULGES_EACH),
        f"maximum number of bases of a site that the guide lacks, 0 to {BULGES_EACH}", 0,
    ),
    Option(
        "rna_bulges", Whole(0, BULGES_EACH),
        f"maximum number of bases of the guide that a site lacks, 0 to {BULGES_EACH}", 0,
    ),
    yes_no(
        "all_alignments",
        "write a row for every alignment of a site, best first, not for the best alone",
    ),
    Option(
        "format", OneOf(("auto", "tsv", "bed", "cas-offinder", "crispor")),
        "columns to write: `auto` is by the ending of the output, `tsv` those of bwarp, "
        "`cas-offinder` and `crispor` those of these programs", "auto",
    ),
    Option(
        "annotation", File("A.bed|A.gff", "a BED, GFF3 or GTF file, plain or gz"),
        "features, BED, GFF3 or GTF: a column names those that a site overlaps",
    ),
)})  # fmt: skip

GUIDES = Task({"": (
    sequence_file("fasta", "F.fa", "sequences to list guides of", in_program=ON_STDIN),
    INDEX_FOLDER._replace(required=False),
    Option(
        "region", Text("REGION"),
        "contig, or contig:from-to, from 1 and with both ends, as in samtools", many=True,
    ),
    Option("bed", File("R.bed"), "regions, BED"),
    output(
        "OUT.fa",
        "FASTA, or a name and a sequence per line if it ends in .txt or .tsv; - is FASTA on "
        "standard output",
    ),
    _PAM,
    _PAM_SIDE,
    Option(
        "length", Whole(SHORTEST_GUIDE, LONGEST_GUIDE),
        f"bases of a guide, {SHORTEST_GUIDE} to {LONGEST_GUIDE}", 20,
    ),
    Option("min_gc", Whole(0, 100), "minimum percentage of C and G in a guide", 0),
    Option("max_gc", Whole(0, 100), "maximum percentage of C and G in a guide", 100),
    yes_no(
        "without_tttt",
        "leave out guides with four T in a row, which end transcription from U6 promoters",
    ),
)})  # fmt: skip

PRIMERS = Task({"": (
    INDEX_FOLDER,
    Option(
        "pairs",
        File("PAIRS.tsv", "a table of primer pairs, such as config/examples/primer_pairs.tsv"),
        "lines of a name, a forward and a reverse primer, 5' to 3', IUPAC", required=True,
        in_program=ON_STDIN,
    ),
    output(
        "OUT",
        "products: .tsv, .bed or .fa by its ending, each also .gz; - is TSV on standard output",
    ),
    Option(
        "mismatches", Whole(0, MOST_MISMATCHES),
        f"maximum number of mismatches of a primer, 0 to {MOST_MISMATCHES}", 2, short="-v",
    ),
    Option(
        "last", Whole(0, LONGEST_KMER),
        "bases at the 3' end of a primer that have no mismatch, as isPcr's -minPerfect; 0 as "
        "primersearch", 15,
    ),
    Option("min_product", Whole(1, 10**9), "minimum number of bases of a product", 1),
    Option("max_product", Whole(1, 10**9), "maximum number of bases of a product, as isPcr", 4000),
    yes_no("with_itself", "also find products of two forward or two reverse primers of a pair"),
)})  # fmt: skip

MEMS = Task({"": (
    INDEX_FOLDER._replace(required=False),
    Option(
        "reference", File("REF.fa"),
        "FASTA, plain or compressed, instead of `--index`: for one comparison of genomes, on the "
        "CPU", only=PROGRAM,
    ),
    _QUERIES._replace(help="reads, contigs or genomes: FASTA or FASTQ, plain or compressed"),
    output(
        "OUT.mums",
        "file to write: a table (.tsv), PAF (.paf) or Parquet (.parquet) by its ending, else "
        "MUMmer's format; .gz compresses; - is standard output",
    ),
    Option("min_length", Whole(1, 2**31, metavar="L"), "minimum length of a match", 20, short="-l"),
    Option(
        "kind", OneOf(("maxmatch", "mumreference", "mum")),
        "`maxmatch`: all matches; `mumreference`: those unique in the reference; `mum`: those also "
        "unique in the strand of the query", "mumreference",
        in_workflow=". For unique ones the reverse BWT is added to the index first",
    ),
    Option(
        "strands", OneOf(("forward", "reverse", "both")), "strands of the queries to search",
        "forward",
    ),
    yes_no(
        "forward_positions",
        "write positions of matches on the reverse strand as those of their first base on the "
        "forward strand", short="-c",
    ),
    yes_no("four_column", "write the contig in every line, even if there is only one", short="-F"),
    yes_no("show_lengths", "write the length of each query in its header line", short="-L"),
    Option(
        "chunk_bases", Whole(10**3, 2**32),
        "search the reference in chunks of N bases, each indexed in turn: for a reference whose "
        "index exceeds the memory, or that of the GPU. The results are the same", only=PROGRAM,
    ),
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
    yes_no("regions", "join hit windows of a query at consecutive positions"),
    Option(
        "best", Whole(1, 10**6),
        "write only the N nearest windows of each query, the first of equally near ones",
        only=PROGRAM,
    ),
    yes_no("count_only", "write only how many windows each query hits", only=PROGRAM),
    Option(
        "max_hits", Whole(0, 10**15), "refuse to list more hits than this; hits are counted first",
        10**9,
    ),
    Option(
        "algorithm", OneOf(("auto", "classes", "tiles", "gather")),
        "`classes`: distinct compositions against distinct compositions; `tiles`: every window; "
        "`gather`: every window, as Breland et al. published it; `auto` takes the quickest. The "
        "results are the same", "auto",
    ),
    PARTS._replace(in_workflow=". `max_hits` holds for each part"),
)})  # fmt: skip
