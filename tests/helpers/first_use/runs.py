"""Runs of all programs on a small data set, from which the table of functions is made.

The lines of a group run one after another in the folder of `write_data`; those that use the index
wait for it.
"""

from itertools import product

INDEXING = "an index"


def _lines(program: str, *parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return a line for each combination of one word from each part."""
    return tuple(" ".join(filter(None, (program, *chosen))) for chosen in product(*parts))


_PAIRS, _SINGLE = "-1 1.fq -2 2.fq", "-1 single.fq"

#: Without reads of more than 250 bases, whose scores need functions that other reads do not.
_SHORT_PAIRS, _SHORT_SINGLE = "-1 short.1.fq -2 short.2.fq", "-1 short.fq"

#: Usual runs of programs. Each line is a kind of run (`bwarp.cli.first_use.listed_functions`),
#: whose first use compiles its functions in parallel.
RUNS = {
    INDEXING: (
        "index genome.fa -o index --with-reverse",
        "index genome.fa -o forward.index",
        "index genome.fa -o forward.index --verify",
        "index genome.fa -o proved.index --with-reverse --verify",
    ),
    "alignments of pairs": (
        "pairs --references windows.fa --queries reads.fa -o pairs.sam --mode fitting",
        "pairs --references windows.fa --queries reads.fa -o pairs.tsv --mode gatk",
        "pairs --references windows.fa --queries reads.fa -o pairs.tsv",
    ),
    "mapped pairs": (
        *_lines(f"map --index index {_SHORT_PAIRS}", ("-o pairs.sam", "-o pairs.bam")),
        f"map --index index {_SHORT_PAIRS} -o unit.bam --sort --stats unit.stats.json",
        "merge unit.bam -o sample.bam",
        f"map --index index {_SHORT_PAIRS} -o marked.bam --sort --mark-duplicates",
        f"map --index index {_SHORT_PAIRS} -o checked.bam --sort --mark-duplicates --qc qc",
        *_lines(
            f"map --index index {_SHORT_PAIRS} --mode end-to-end",
            ("-o whole.sam", "-o whole.bam", "-o whole.bam --sort"),
        ),
    ),
    "mapped single reads": _lines(
        f"map --index index {_SHORT_SINGLE}",
        ("", "--mode end-to-end"),
        ("-o single.sam", "-o single.bam", "-o single.bam --sort"),
    ),
    "every locus of reads": (
        *_lines(f"allmap --index index --edits 4 {_SHORT_SINGLE}", ("-o 1.bam", "-o 1.tsv")),
        *_lines(f"allmap --index index --edits 4 {_SHORT_PAIRS}", ("-o 2.bam", "-o 2.tsv")),
        *_lines(
            "allmap --index index --edits 4 --extension local -o local.bam",
            (_SHORT_SINGLE, _SHORT_PAIRS),
        ),
    ),
    "a database search": (
        "search --queries proteins.fa --database database.fa -o hits.tsv --evalue"
        " --alignments hits.m8",
    ),
    "seeds": (
        "seeds --index index --queries 1.fq -o seeds.tsv -k 20 --step 10 --mismatches 1",
        "seeds --index index --queries 1.fq -o exact.tsv -k 20 --step 10",
        "seeds --index index --queries words.fa -o exact.bed",
        "seeds --index index --queries words.fa -o words.bed --mismatches 2",
        "seeds --index index --queries words.fa -o words.tsv",
    ),
    "exact matches": (
        "mems --index index --queries 1.fq -o reads.mums --strands both",
        "mems --index index --queries 1.fq -o reads.tsv --strands both --kind maxmatch",
        "mems --index index --queries 1.fq -o all.mums --strands both --kind maxmatch",
        "mems --reference genome.fa --queries windows.fa -o windows.mums",
        "mems --reference genome.fa --queries windows.fa -o all.mums --kind maxmatch",
    ),
    "scans": _lines(
        "scan --reference genome.fa --queries words.fa -o scan.tsv --similarity 0.95",
        ("", "--align"),
    ),
    "off-targets": (
        "offtargets --index index --guides guides.fa -o sites.tsv",
        "offtargets --index index --guides guides.fa -o bulges.tsv --dna-bulges 1 --rna-bulges 1",
        "offtargets --index index --guides guides.fa -o haplotypes.tsv --variants phased.vcf",
    ),
    "a simulation": (
        "simulate-genome -o made.fa.gz --length 20000 --contigs 2",
        "simulate-reads --reference made.fa.gz -1 made_1.fq.gz -2 made_2.fq.gz --pairs 200",
    ),
    "products of primers": ("primers --index index --pairs primers.tsv -o products.tsv",),
}

#: Runs with other options or longer reads, and of programs that compile little. `bwarp compile`
#: compiles their functions; otherwise the first run compiles each when it is called.
FURTHER = {
    "indexes": (
        "index genome.fa -o rare.index --occ-rate 128 --sa-rate 8",
        "index genome.fa -o all.index --sa-rate 1 --prefix-length 4 --verify",
        "index genome.fa -o small.index --memory 1M",
    ),
    "pairs": (
        *_lines(
            "pairs --references windows.fa --queries reads.fa",
            (
                "--mode global",
                "--mode local",
                "--mode semiglobal",
                "--mode fitting",
                "--mode local --match 2 --mismatch -3 --gap-open 5 --gap-extend 2",
                "--mode semiglobal --free-ends reference-start,reference-end",
            ),
            ("-o pairs.tsv", "-o pairs.sam", "-o pairs.paf", "-o pairs.tsv.gz"),
        ),
        *_lines(
            "pairs --references windows.fa --queries reads.fa -o gatk.tsv --mode gatk",
            (
                "--overhang softclip",
                "--overhang indel",
                "--overhang leading-indel",
                "--overhang ignore",
            ),
        ),
        "pairs --pairs pairs.txt -o few.paf --mode local",
        "pairs --references database.fa --queries database.fa -o proteins.tsv --matrix BLOSUM62",
    ),
    "map": (
        f"map --index index {_PAIRS} -o unit.bam",
        *_lines(
            "map --index index",
            (
                _PAIRS,
                _SINGLE,
                "-1 both.fq --interleaved",
                f"{_PAIRS} -U single.fq",
                "-1 long.fq",
                "-1 1.fq.gz -2 2.fq.gz",
            ),
            ("-o o.sam", "-o o.bam --sort", "-o o.paf", "-o o.cram --sort"),
        ),
        *_lines(
            f"map --index index {_PAIRS}",
            ("-o o.bam --sort", "-o o.paf"),
            (
                "--all",
                "--all --max-secondary 1 --eqx",
                "--eqx",
                "--hic",
                "--regions regions.bed",
                "--insert-size 400,40",
                "--orientation RF",
                "--orientation FF",
                "--alt contig_1",
                "--min-score 60",
                "--match 2 --mismatch -8 --gap-open 12 --gap-extend 2 --clip 0",
                "--mode end-to-end --all",
            ),
        ),
        *_lines(
            f"map --index index {_SINGLE}",
            ("-o o.bam --sort", "-o o.paf"),
            ("--all", "--eqx", "--alt contig_1", "--mode end-to-end --all"),
        ),
        *_lines(
            f"map --index index {_PAIRS} -o o.bam --sort",
            (
                "--soft-clip --all",
                "--read-group @RG\\tID:1\\tSM:s",
                "--mark-duplicates --sort-memory 1",
            ),
        ),
        f"map --index index {_SINGLE} -o o.bam --soft-clip",
        "map --index index -1 comments.1.fq -2 comments.2.fq -o o.bam --sort --comments",
        "map --index index -1 comments.1.fq -2 comments.2.fq -o o.bam --sort --comments"
        " --mark-duplicates --barcode-tag RX --duplicate-tags",
        f"map --index index {_SINGLE} -o o.bam --sort --mark-duplicates",
        "map --index rare.index -1 1.fq -2 2.fq -o o.sam",
        "map --index all.index -1 1.fq -2 2.fq -o o.sam",
        "batch-reads -1 1.fq -2 2.fq -o mapped.batches --batch-size 300",
        "map-insert-size --index index --batches mapped.batches -o map.insert.json",
        *(
            f"map --index index --batches mapped.batches --part {part}/2 -o part{part}.bam --sort"
            f" --estimated-insert-size map.insert.json --stats part{part}.stats.json"
            for part in (1, 2)
        ),
        "merge part1.bam part2.bam -o sample.bam",
        "merge part1.bam part2.bam -o sample.bam --units one one",
    ),
    "allmap": (
        *_lines(
            "allmap --index index",
            (f"--edits 4 {_SINGLE}", f"--edits 3% {_PAIRS}"),
            ("-o a.tsv", "-o a.bam", "-o a.paf"),
            (
                "",
                "--report best",
                "--report strata:1",
                "--max-places 2",
                "--gaps 0",
                "--seed-mismatches 1",
                "--filter kmers",
                "--filter both",
                "--filter off",
            ),
        ),
        *_lines(
            f"allmap --index index --edits 4 {_PAIRS} -o a.bam",
            (
                "--extension semiglobal",
                "--extension local",
                "--xa",
                "--unpaired",
                "--orientation RF",
                "--insert-size 400,40",
            ),
        ),
        f"allmap --index index --edits 4 {_SINGLE} -o a.bam --extension semiglobal",
        f"allmap --index index --edits 4 {_SINGLE} -o a.bam --extension local",
    ),
    "the chain": (
        "batch-reads -1 1.fq -2 2.fq -o batches --batch-size 1000",
        "seed-reads --index index --reads batches/0.reads -o 0.seeds --edits 4",
        "locate-seeds --index index --seeds 0.seeds -o 0.hits",
        "filter-candidates --index index --reads batches/0.reads --hits 0.hits -o 0.some",
        "extend-candidates --index index --reads batches/0.reads --candidates 0.some -o 0.loci",
        "allmap-insert-size --index index --reads batches/0.reads --loci 0.loci -o insert.json",
        *_lines(
            "write-alignments --index index --reads batches/0.reads --loci 0.loci"
            " --estimated-insert-size insert.json",
            ("-o 0.bam --stats 0.stats.json", "-o 0.tsv", "-o 0.paf"),
        ),
        "merge-loci 0.bam 0.bam -o chain.bam",
        "batch-reads -1 single.fq -o alone --batch-size 1000",
        # Two rounds.
        "seed-reads --index index --reads alone/0.reads -o 1.seeds --edits 4 --report best",
        "locate-seeds --index index --seeds 1.seeds -o 1.hits",
        *_lines(
            "extend-candidates --index index --reads alone/0.reads --candidates 1.hits -o 1.loci",
            ("--extension local", "--extension semiglobal", ""),
        ),
        "seed-reads --index index --reads alone/0.reads -o 2.seeds --edits 4 --report best"
        " --after 1.loci",
        "locate-seeds --index index --seeds 2.seeds -o 2.hits",
        "extend-candidates --index index --reads alone/0.reads --candidates 2.hits -o 2.loci",
        *_lines(
            "write-alignments --index index --reads alone/0.reads --loci 1.loci 2.loci -o 1.bam",
            ("", "--xa"),
        ),
    ),
    "search-index": ("search-index database.fa -o prepared",),
    "search": (
        "search-index database.fa -o prepared",
        "search --queries proteins.fa --database prepared -o hits.tsv",
        "search --queries proteins.fa --database database.fa -o hits.tsv --matrix PAM250",
        "search --queries reads.fa --database windows.fa -o hits.tsv --match 2 --mismatch -3"
        " --gap-open 5 --gap-extend 2 --top 3",
    ),
    "seeds": (
        *_lines(
            "seeds --index index --queries words.fa",
            ("-o s.tsv", "-o s.bed", "-o s.tsv.gz", "-o s.parquet", "-o s.tsv --count-only"),
            (
                "",
                "--mismatches 1",
                "--mismatches 3",
                "--mismatches 1 --algorithm backtracking",
                "-k 12 --step 3 --max-hits 0",
            ),
        ),
        "seeds --index index --queries words.fa -o s.tsv --site-sequence --mismatches 2",
        "seeds --index index --queries words.fa -o s.tsv --site-sequence --pam NGG",
        "seeds --index index --queries iupac.fa -o s.tsv --mismatches 1",
        "seeds --index forward.index --queries words.fa -o s.tsv",
        "cut-queries --queries words.fa -o words.parts --parts 2 --for seeds",
        "seeds --index index --queries words.parts/1.fa -o s1.tsv",
        "seeds --index index --queries words.parts/2.fa -o s2.tsv",
        "merge-tables s1.tsv s2.tsv -o s.tsv",
    ),
    "mems": (
        *_lines(
            "mems --queries windows.fa",
            ("--index index", "--reference genome.fa"),
            ("--kind maxmatch", "--kind mumreference", "--kind mum"),
            ("-o m.mums", "-o m.tsv", "-o m.paf", "-o m.parquet"),
            ("", "--strands both", "--strands reverse --min-length 12"),
        ),
        "mems --index index --queries 1.fq -o m.mums --forward-positions --four-column"
        " --show-lengths --strands both",
        "mems --reference genome.fa --queries 1.fq -o m.mums --chunk-bases 9000",
    ),
    "scan": (
        *_lines(
            "scan --reference genome.fa --queries words.fa --similarity 0.9",
            ("-o c.tsv", "-o c.bed", "-o c.parquet"),
            (
                "",
                "--regions",
                "--best 3",
                "--align --top 3",
                "--algorithm classes",
                "--algorithm tiles",
                "--algorithm gather",
            ),
        ),
        "scan --reference genome.fa --queries words.fa --similarity 0.9 -o c.tsv --count-only",
        "scan --reference genome.fa --queries single.fq --similarity 0.99 -o c.tsv",
    ),
    "guides": (
        "guides --fasta genome.fa -o listed.fa",
        "guides --index index --region contig_0:1001-2000 -o listed.fa --min-gc 30 --without-tttt",
        "guides --index index --bed regions.bed -o listed.txt --pam TTTV --pam-side 5 --length 23",
        "guides --index index --region contig_0:1001-2000 -o designed.tsv --specificity --nickases",
        *_lines(
            "offtargets --index index --guides guides.fa",
            ("-o t.tsv", "-o t.bed", "-o t.tsv --format cas-offinder", "-o t.tsv --format crispor"),
            (
                "",
                "--dna-bulges 1",
                "--rna-bulges 1",
                "--dna-bulges 2 --rna-bulges 2 --all-alignments",
                "--pam NGG,NAG --mismatches 5",
                "--annotation regions.bed",
            ),
        ),
        "offtargets --index index --guides guides.fa -o t.tsv --pam TTTV --pam-side 5",
        "offtargets --index index --guides guides.fa -o t.tsv --variants sites.vcf",
        "offtargets --index index --guides guides.fa -o t.tsv --variants phased.vcf --populations"
        " samples.tsv --samples",
    ),
    "primers": _lines(
        "primers --index index --pairs primers.tsv",
        ("-o p.tsv", "-o p.bed", "-o p.fa"),
        ("", "--mismatches 3 --last 5", "--with-itself --last 0"),
    ),
    "simulated genomes and reads": (
        "simulate-genome -o demo.fa.gz --length 20000 --contigs 2",
        "simulate-genome -o demo.fa --length 20000 --iupac-letters 3 --lower-case-repeats",
        "simulate-reads --reference demo.fa.gz -1 demo_1.fq.gz -2 demo_2.fq.gz --pairs 200",
        "simulate-reads --reference demo.fa -1 demo.fq --reads 200 --vcf demo.vcf",
    ),
}
