"""What the programs are usually run for, on a small data set.

The table of functions for the CPU is made of these runs (`bwarp.cli.first_use.recording`).
"""

__all__ = ["INDEXING", "MORE_KINDS", "RUNS"]

INDEXING = "an index"

#: Command lines that are run one after another, by what they are for, in the folder of
#: `write_data`; those that use the index wait for it. They begin in this order: first what takes
#: longest, and not side by side what has much in common, for both would compile it.
RUNS = {
    INDEXING: ("index genome.fa -o index --with-reverse",),
    "alignments of pairs": (
        "pairs --references windows.fa --queries reads.fa -o pairs.sam --mode fitting",
        "pairs --references windows.fa --queries reads.fa -o pairs.tsv --mode gatk",
        "pairs --references windows.fa --queries reads.fa -o pairs.tsv",
    ),
    "mapped pairs": (
        "map --index index -1 1.fq -2 2.fq -o unit.bam --sort --stats unit.stats.json",
        "merge unit.bam -o sample.bam",
        "map --index index -1 1.fq -2 2.fq -o marked.bam --sort --mark-duplicates",
    ),
    "every locus of reads": (
        "allmap --index index -1 single.fq -o loci.bam --edits 4",
        "allmap --index index -1 1.fq -2 2.fq -o loci.bam --edits 4",
        "allmap --index index -1 single.fq -o loci.tsv --edits 4 --report best",
    ),
    "a database search": (
        "search --queries proteins.fa --database database.fa -o hits.tsv --evalue"
        " --alignments hits.m8",
    ),
    "mapped single reads": (
        "map --index index -1 single.fq -o single.sam",
        "map --index index -1 single.fq -o single.sam --mode end-to-end",
    ),
    "simulated genomes and reads": (
        "simulate-genome -o demo.fa.gz --length 20000 --contigs 2",
        "simulate-reads --reference demo.fa.gz -1 demo_1.fq.gz -2 demo_2.fq.gz --pairs 200",
        "simulate-reads --reference demo.fa.gz -1 demo.fq --reads 200",
    ),
    "seeds": (
        "seeds --index index --queries 1.fq -o seeds.tsv -k 20 --step 10 --mismatches 1",
        "seeds --index index --queries words.fa -o words.bed --mismatches 2",
        "seeds --index index --queries words.fa -o words.tsv",
    ),
    "exact matches": (
        "mems --index index --queries 1.fq -o reads.mums --strands both",
        "mems --index index --queries 1.fq -o reads.tsv --strands both --kind maxmatch",
        "mems --reference genome.fa --queries windows.fa -o windows.mums",
    ),
    "a scan": ("scan --reference genome.fa --queries words.fa -o scan.tsv --similarity 0.95",),
    "the proof of an index": ("index --verify -o index",),
}

#: Further kinds of run, which call others of the functions for the CPU, or fewer.
MORE_KINDS = {
    INDEXING: (
        "index genome.fa -o forward.index",
        "index genome.fa -o forward.index --verify",
        "index genome.fa -o proved.index --with-reverse --verify",
    ),
    "mapped pairs": (
        "map --index index -1 1.fq -2 2.fq -o pairs.sam",
        "map --index index -1 1.fq -2 2.fq -o pairs.bam",
        "map --index index -1 1.fq -2 2.fq -o whole.sam --mode end-to-end",
        "map --index index -1 1.fq -2 2.fq -o whole.bam --mode end-to-end",
        "map --index index -1 1.fq -2 2.fq -o whole.bam --mode end-to-end --sort",
    ),
    "mapped single reads": (
        "map --index index -1 single.fq -o single.bam",
        "map --index index -1 single.fq -o single.bam --sort",
        "map --index index -1 single.fq -o single.bam --mode end-to-end",
        "map --index index -1 single.fq -o single.bam --mode end-to-end --sort",
    ),
    "every locus of reads": (
        "allmap --index index -1 1.fq -2 2.fq -o loci.tsv --edits 4",
        "allmap --index index -1 single.fq -o loci.bam --edits 4 --extension local",
        "allmap --index index -1 1.fq -2 2.fq -o loci.bam --edits 4 --extension local",
    ),
    "seeds": (
        "seeds --index index --queries 1.fq -o exact.tsv -k 20 --step 10",
        "seeds --index index --queries words.fa -o exact.bed",
    ),
    "exact matches": (
        "mems --index index --queries 1.fq -o all.mums --strands both --kind maxmatch",
        "mems --reference genome.fa --queries windows.fa -o all.mums --kind maxmatch",
    ),
}
