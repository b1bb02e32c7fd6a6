"""Options of the alignment programs: pairs and search."""

from bwarp.options.common import GPUS, PARTS, SEQUENCES, output, sequence_file
from bwarp.options.option import CONFIGURATION, PROGRAM, OneOf, Option, Task, Text, Whole, yes_no
from bwarp.options.scores import score_options

FREE_ENDS = ("query-start", "query-end", "reference-start", "reference-end")

_MATRIX = Option(
    "matrix", Text("NAME", "the name of a substitution matrix, such as BLOSUM62"),
    "substitution matrix in place of `--match` and `--mismatch`, for proteins or nucleotides, such "
    "as BLOSUM62, PAM250 or NUC.4.4",
)  # fmt: skip

PAIRS = Task({"": (
    sequence_file("references", "R.fa", required=CONFIGURATION),
    sequence_file(
        "queries", "Q.fa", f"{SEQUENCES}, with as many records as references",
        required=CONFIGURATION,
    ),
    Option(
        "pairs", Text("TABLE"),
        "instead of two files, a tab-separated table with the columns query, reference; or name, "
        "query, reference name, reference", only=PROGRAM,
    ),
    output(
        "OUT",
        "file to write: .tsv, .paf or .sam, chosen by the ending; .gz compresses; - writes TSV to "
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
            "ENDS", f"a comma-separated list of {', '.join(FREE_ENDS)}",
            "^(query|reference)-(start|end)(,(query|reference)-(start|end))*$",
        ),
        "with semiglobal, the ends whose gaps are free, if not all four: a comma-separated list "
        f"of {', '.join(FREE_ENDS)}",
    ),
    _MATRIX,
    *score_options(10_000, 10_000, gap_open="6; 11 with a matrix"),
    Option(
        "overhang", OneOf(("softclip", "indel", "leading-indel", "ignore")),
        "with gatk, how to treat query bases beyond the ends of the reference", unset="softclip",
    ),
    Option(
        "parameters",
        OneOf((
            "original-default", "standard-ngs", "new-sw-parameters", "alignment-to-best-haplotype",
        )),
        "with gatk, the parameter set to use; the scores above override its values",
        unset="new-sw-parameters",
    ),
    Option(
        "algorithm", OneOf(("band", "run-lengths")),
        "how CIGARs are traced: `band` stores directions in a band; `run-lengths`, only for gatk "
        "on a GPU, stores run lengths as in Ren et al. The results are the same", "band",
    ),
)})  # fmt: skip

SEARCH = Task({"": (
    sequence_file("queries", "Q.fa", required=True),
    sequence_file(
        "database", "D.fa", required=True, in_program=", or a folder written by bwarp search-index",
    ),
    output("OUT.tsv", "table to write; .gz compresses; - is standard output"),
    _MATRIX._replace(unset="BLOSUM62"),
    *score_options(
        127, 10_000, match="none, the matrix is used", mismatch="-3", gap_open=11, gap_extend=1
    ),
    Option("top", Whole(1, 10**9), "maximum number of hits to report for each query", 10),
    Option("min_score", Whole(1, 2**30), "minimum score of a hit", 1, short="-T"),
    yes_no(
        "evalue",
        "add the columns evalue and bits; needs a matrix and gap costs with published parameters",
    ),
    Option(
        "alignments", Text("OUT.m8"),
        "also align the hits and write them in BLAST's tabular format (outfmt 6)", only=PROGRAM,
    ),
    Option(
        "algorithm", OneOf(("profile", "prefix-scan")),
        "method to compute scores: `profile` or, on one GPU, the `prefix-scan` of Chang and "
        "Chen. The results are the same", "profile",
    ),
    PARTS,
    yes_no(
        "prepare",
        "write the database to a folder once, and search that: jobs then start faster. The result "
        "is the same",
        only=CONFIGURATION,
    ),
    GPUS,
)})  # fmt: skip
