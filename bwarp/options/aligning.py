"""Options of alignments: pairs, search."""

from bwarp.options.common import GPUS, PARTS, SEQUENCES, output, score_options, sequence_file
from bwarp.options.option import CONFIGURATION, PROGRAM, OneOf, Option, Task, Text, Whole, yes_no

FREE_ENDS = ("query-start", "query-end", "reference-start", "reference-end")

_MATRIX = Option(
    "matrix", Text("NAME", "the name of a substitution matrix, such as BLOSUM62"),
    "substitution matrix in place of `--match` and `--mismatch`, for proteins or nucleotides, such "
    "as BLOSUM62, PAM250 or NUC.4.4",
)  # fmt: skip

PAIRS = Task({"": (
    sequence_file("references", "R.fa", required=CONFIGURATION),
    sequence_file(
        "queries", "Q.fa", f"{SEQUENCES}: as many records as references", required=CONFIGURATION,
    ),
    Option(
        "pairs", Text("TABLE"),
        "instead of two files, a tab-separated table: query, reference; or query name, query, "
        "reference name, reference", only=PROGRAM,
    ),
    output(
        "OUT",
        "alignments as .tsv, .paf or .sam by its ending, .gz after it compresses; - is TSV on "
        "standard output",
    ),
    Option(
        "mode", OneOf(("global", "local", "semiglobal", "fitting", "gatk")),
        "`semiglobal`: all ends of both sequences are free; `fitting`: the whole query anywhere in "
        "the reference; `gatk`: the alignments of GATK, base for base", "semiglobal",
    ),
    Option(
        "free_ends",
        Text(
            "ENDS", f"some of {', '.join(FREE_ENDS)}, with commas between",
            "^(query|reference)-(start|end)(,(query|reference)-(start|end))*$",
        ),
        f"with semiglobal, the ends that are free instead of all: some of {', '.join(FREE_ENDS)}, "
        "with commas between them",
    ),
    _MATRIX,
    *score_options(10_000, 10_000, gap_open="6; 11 with a matrix"),
    Option(
        "overhang", OneOf(("softclip", "indel", "leading-indel", "ignore")),
        "with gatk, what becomes of query bases beyond the reference", unset="softclip",
    ),
    Option(
        "parameters",
        OneOf((
            "original-default", "standard-ngs", "new-sw-parameters", "alignment-to-best-haplotype",
        )),
        "with gatk, one of its parameter sets, of which the scores above replace single ones",
        unset="new-sw-parameters",
    ),
    Option(
        "algorithm", OneOf(("band", "run-lengths")),
        "what is kept for CIGARs: directions in a `band` or, with gatk on a GPU, the `run-lengths` "
        "of Ren et al. The results are the same", "band",
    ),
)})  # fmt: skip

SEARCH = Task({"": (
    sequence_file("queries", "Q.fa", required=CONFIGURATION),
    sequence_file(
        "database", "D.fa", required=True, in_program=", or a folder that --prepare wrote",
    ),
    output("OUT.tsv", "table to write; .gz compresses; - is standard output")._replace(
        required=False
    ),
    Option(
        "prepare", Text("FOLDER"),
        "write the database to this folder, which later runs map into memory instead of reading "
        "FASTA", only=PROGRAM,
    ),
    _MATRIX._replace(unset="BLOSUM62"),
    *score_options(
        127, 10_000, match="none: by the matrix", mismatch="-3", gap_open=11, gap_extend=1
    ),
    Option("top", Whole(1, 10**9), "maximum number of hits to report for each query", 10),
    Option("min_score", Whole(1, 2**30), "minimum score of a hit", 1, short="-T"),
    yes_no(
        "evalue",
        "add columns evalue and bits, for matrices and gap costs with published parameters",
    ),
    Option(
        "alignments", Text("OUT.m8"),
        "align the hits too, and write them in BLAST's tabular form (outfmt 6)", only=PROGRAM,
    ),
    Option(
        "algorithm", OneOf(("profile", "prefix-scan")),
        "how scores are computed: by `profile` or, on one GPU, by the `prefix-scan` of Chang and "
        "Chen. The results are the same", "profile",
    ),
    PARTS,
    GPUS,
)})  # fmt: skip
