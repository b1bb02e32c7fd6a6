"""A command, with small inputs, for each file that programs of bwarp write."""

from pathlib import Path

GENOME = b">one\n%b\n>two\nACGATCG\n" % (
    b"ACGTTGCAACGGTATCGGATATCGCCTTAGGCATCGATTAGCAGCATCGGATCCGGTTAAC" * 4
)
READ = b"ACGGTATCGGATATCGCCTTAGGCATCGATTAGCAGCATC"

INPUTS = {
    "g.fa": GENOME,
    "r.fq": b"".join(b"@r%d\n%b\n+\n%b\n" % (i, READ, b"I" * 40) for i in range(12)),
    "p.fa": b"".join(b">p%d\nMKVLAAGIVGLLLAQWERTY\n" % i for i in range(9)),
    "guides.fa": b">g\nACGGTATCGGATATCGCCTT\n",
    "w.fa": b">w\nATCGGATATCGC\n",
}

BATCH = ("--index", "IN/i", "--reads", "IN/b/0.reads")

MAP = ("map_reads", "--index", "IN/i", "-1", "IN/r.fq")

#: Name of the program and its arguments; IN/ and OUT/ stand for folders.
PREPARATIONS = [
    ("index_reference", "IN/g.fa", "-o", "IN/i", "--prefix-length", "2"),
    ("batch_reads", "-1", "IN/r.fq", "-o", "IN/b"),
    ("seed_reads", *BATCH, "-o", "IN/seeds", "--edits", "2"),
    ("locate_seeds", "--index", "IN/i", "--seeds", "IN/seeds", "-o", "IN/hits"),
    ("filter_candidates", *BATCH, "--hits", "IN/hits", "-o", "IN/candidates"),
    ("extend_candidates", *BATCH, "--candidates", "IN/candidates", "-o", "IN/loci"),
    (
        "write_alignments",
        *BATCH,
        "--loci",
        "IN/loci",
        "-o",
        "IN/l.bam",
        "--stats",
        "IN/l.stats.json",
    ),
    ("write_alignments", *BATCH, "--loci", "IN/loci", "-o", "IN/l.tsv"),
    (*MAP, "-o", "IN/u.bam", "--sort", "--stats", "IN/u.stats.json"),
]

WRITERS = {
    "index": ("index_reference", "IN/g.fa", "-o", "OUT/i"),
    "sam": (*MAP, "-o", "OUT/o.sam"),
    "sorted sam": (*MAP, "-o", "OUT/o.sam", "--sort"),
    "bam": (*MAP, "-o", "OUT/o.bam"),
    "sorted bam": (*MAP, "-o", "OUT/o.bam", "--sort"),
    "cram": (*MAP, "-o", "OUT/o.cram", "--sort"),
    "mapped paf": (*MAP, "-o", "OUT/o.paf"),
    "part bam": ("map_reads", "--index", "IN/i", "--batches", "IN/b", "-o", "OUT/o.bam", "--sort"),
    "insert size": ("estimate_map_insert_size", "--index", "IN/i", "--batches", "IN/b", "-o",
                    "OUT/o.json"),
    "merged bam": ("merge_alignments", "IN/u.bam", "-o", "OUT/o.bam"),
    "seeds tsv": ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.tsv",
                  "-k", "12"),
    "seeds gz": ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.tsv.gz",
                 "-k", "12"),
    "seeds parquet": ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq",
                      "-o", "OUT/o.parquet", "-k", "12"),
    "seeds bed": ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.bed",
                  "-k", "12"),
    "offtargets": ("find_offtargets", "--index", "IN/i", "--guides", "IN/guides.fa",
                   "-o", "OUT/o.tsv", "--pam", "none"),
    "counts": ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.tsv",
               "-k", "12", "--count-only"),
    "batches": ("batch_reads", "-1", "IN/r.fq", "-o", "OUT/b", "--batch-size", "5"),
    "seeds of a batch": ("seed_reads", *BATCH, "-o", "OUT/seeds", "--edits", "2"),
    "located seeds": ("locate_seeds", "--index", "IN/i", "--seeds", "IN/seeds", "-o", "OUT/hits"),
    "candidates": ("filter_candidates", *BATCH, "--hits", "IN/hits", "-o", "OUT/candidates"),
    "loci": ("extend_candidates", *BATCH, "--candidates", "IN/candidates", "-o", "OUT/loci"),
    "loci bam": ("write_alignments", *BATCH, "--loci", "IN/loci", "-o", "OUT/o.bam"),
    "loci tsv": ("write_alignments", *BATCH, "--loci", "IN/loci", "-o", "OUT/o.tsv.gz"),
    "merged loci bam": ("merge_loci", "IN/l.bam", "-o", "OUT/o.bam"),
    "merged loci tsv": ("merge_loci", "IN/l.tsv", "-o", "OUT/o.tsv"),
    "mums": ("find_mems", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.mums",
             "--kind", "maxmatch"),
    "paf": ("find_mems", "--index", "IN/i", "--queries", "IN/r.fq", "-o", "OUT/o.paf",
            "--kind", "maxmatch"),
    "mems parquet": ("find_mems", "--index", "IN/i", "--queries", "IN/r.fq", "-o",
                     "OUT/o.parquet", "--kind", "maxmatch"),
    "scan": ("scan_composition", "--reference", "IN/g.fa", "--queries", "IN/w.fa",
             "-o", "OUT/o.tsv", "--similarity", "0.8"),
    "scan parquet": ("scan_composition", "--reference", "IN/g.fa", "--queries", "IN/w.fa",
                     "-o", "OUT/o.parquet", "--similarity", "0.8"),
    "scan alignments": ("scan_composition", "--reference", "IN/g.fa", "--queries", "IN/w.fa",
                        "-o", "OUT/o.tsv", "--similarity", "0.8", "--align"),
    "scan alignments parquet": ("scan_composition", "--reference", "IN/g.fa", "--queries",
                                "IN/w.fa", "-o", "OUT/o.parquet", "--similarity", "0.8",
                                "--align"),
    "pairs": ("align_pairs", "--references", "IN/r.fq", "--queries", "IN/r.fq", "-o", "OUT/o.tsv"),
    "pairs sam": ("align_pairs", "--references", "IN/r.fq", "--queries", "IN/r.fq",
                  "-o", "OUT/o.sam"),
    "search": ("search_database", "--queries", "IN/p.fa", "--database", "IN/p.fa",
               "-o", "OUT/o.tsv"),
    "database": ("index_database", "IN/p.fa", "-o", "OUT/d"),
    "parts of queries": ("cut_queries", "--queries", "IN/r.fq", "-o", "OUT/q", "--parts", "2",
                         "--for", "seeds"),
    "merged tables": ("merge_tables", "IN/l.tsv", "-o", "OUT/o.tsv"),
    "genome": ("simulate_genome", "-o", "OUT/o.fa", "--length", "2000"),
}  # fmt: skip


def command(words, given: Path, output: Path) -> tuple[str, ...]:
    """Return the words with the folders filled in."""
    return tuple(word.replace("IN/", f"{given}/").replace("OUT/", f"{output}/") for word in words)
