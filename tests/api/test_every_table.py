"""bwarp.read_table reads every table and statistics file of all programs, in all their formats."""

import itertools

import pytest

import bwarp
from bwarp.allmap.locus_text import FORMATS as LOCUS_FORMATS
from bwarp.cli.commands import align_pairs, find_mems, list_guides
from bwarp.cli.subcommands import SUBCOMMANDS
from bwarp.io.atomic_output import TABLE_FORMATS
from bwarp.options.aligning import PAIRS as PAIRS_TASK
from bwarp.options.finding import OFFTARGETS
from bwarp.options.mapping import ALLMAP
from bwarp.primers.products import ENDINGS as PRODUCT_ENDINGS
from bwarp.records.alignment_file import ENDINGS as ALIGNMENT_ENDINGS
from tests.helpers.cases.every_writer import INPUTS, PREPARATIONS, READ, command
from tests.helpers.programs.programs_here import run_here

MATE = READ.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]
MORE_INPUTS = {
    "primers.tsv": b"7\tACGTTGCAACGGTATCGGAT\tGTTAACCGGATCCGATGCTGC\n",
    "m.fq": b"".join(b"@r%d\n%b\n+\n%b\n" % (i, MATE, b"I" * len(MATE)) for i in range(12)),
    "v.vcf": b"##fileformat=VCFv4.2\n"
    b"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts1\ts2\n"
    b"one\t15\trs1\tT\tG\t.\t.\tAF=0.25\tGT\t0|1\t0|0\n"
    b"one\t75\t.\tT\tTA\t.\t.\t.\tGT\t0/1\t0|0\n"
    b"one\t90\t.\tC\t<DEL>\t.\t.\t.\tGT\t0|1\t0|0\n",
    "genes.bed": b"one\t0\t100\tgene\n",
    "regions.bed": b"one\t0\t100\tgene\none\t90\t120\ntwo\t0\t7\tNA\n",
    "tags.fq": b"".join(
        b"@%b\n%b\n+\n%b\n" % (name, READ, b"I" * len(READ))
        for name in (b"a BC:Z:ACGT", b"b XX:i:3", b"c")
    ),
}

#: Endings of files that are neither tables nor statistics: alignments, sequences, and pages.
OTHERS = (
    *(".sam", ".bam", ".bai", ".cram", ".crai", ".fa", ".fasta", ".fq"),
    *(".html", ".yaml", ".yml"),
)


def one_for_each(endings) -> list[str]:
    names = (f"OUT/o.{ending.removeprefix('.')}" for ending in endings)
    return [name for name in names if not name.endswith(OTHERS)]


SEEDS = ("find_seeds", "--index", "IN/i", "--queries", "IN/r.fq", "-k", "12")
SITES = (
    *("find_offtargets", "--index", "IN/i", "--guides", "IN/guides.fa", "--mismatches", "2"),
    *("--dna-bulges", "1", "--rna-bulges", "1"),
)
SCAN = (
    *("scan_composition", "--reference", "IN/g.fa", "--queries", "IN/w.fa"),
    *("--similarity", "0.8"),
)
LOCI = ("find_alignments", "--index", "IN/i", "--edits", "2", "--stats", "OUT/o.stats.json")
PAIRS = ("align_pairs", "--references", "IN/r.fq", "--queries", "IN/r.fq")
SEARCH = ("search_database", "--queries", "IN/p.fa", "--database", "IN/p.fa", "-o", "OUT/o.tsv")
MAP = ("map_reads", "--index", "IN/i", "--stats", "OUT/o.stats.json")
CHECKS = (
    *("--mark-duplicates", "--duplicate-metrics", "OUT/o.txt"),
    *("--qc", "OUT/qc", "--qc-regions", "IN/regions.bed", "--timeline", "OUT/t.json"),
)
MEMS = ("find_mems", "--index", "IN/i", "--queries", "IN/r.fq", "--kind", "maxmatch")
GUIDES = ("list_guides", "--index", "IN/i")
PRODUCTS = ("find_products", "--index", "IN/i", "--pairs", "IN/primers.tsv", "--mismatches", "0")

#: Commands of all programs that write tables, with all formats and all sets of columns.
COMMANDS = [
    *((*SEEDS, "-o", name) for name in one_for_each(TABLE_FORMATS)),
    (*SEEDS, "-o", "OUT/o.tsv.gz", "--max-hits", "1"),
    (*SEEDS, "-o", "OUT/o.tsv", "--site-sequence"),
    (*SEEDS, "-o", "OUT/o.tsv", "--count-only"),
    *(
        (*SITES, "-o", "OUT/o.bed" if layout == "bed" else "OUT/o.tsv", "--format", layout)
        for layout in OFFTARGETS["format"].value.words
    ),
    (*SITES, "-o", "OUT/o.tsv", "--all-alignments", "--annotation", "IN/genes.bed"),
    (*SITES, "-o", "OUT/o.tsv", "--pam", "none", "--format", "crispor"),
    (*SITES, "-o", "OUT/o.tsv", "--genomes", "IN/g.fa"),
    (*SITES, "-o", "OUT/o.tsv", "--pam", "none", "--variants", "IN/v.vcf", "--samples"),
    *((*SCAN, "-o", name) for name in one_for_each(TABLE_FORMATS)),
    (*SCAN, "-o", "OUT/o.tsv", "--regions"),
    (*SCAN, "-o", "OUT/o.tsv", "--count-only"),
    *((*SCAN, "-o", name, "--align") for name in one_for_each(TABLE_FORMATS)),
    *(
        (*LOCI, *reads, "-o", name, "--extension", extension)
        for reads, name, extension in itertools.product(
            (("-1", "IN/r.fq"), ("-1", "IN/r.fq", "-2", "IN/m.fq", "-I", "100,20")),
            one_for_each(LOCUS_FORMATS),
            ALLMAP["extension"].value.words,
        )
    ),
    (*LOCI, "-1", "IN/r.fq", "-o", "OUT/o.tsv", "--max-places", "1"),
    *((*PRODUCTS, "-o", name) for name in one_for_each(PRODUCT_ENDINGS)),
    *((*GUIDES, "-o", name) for name in one_for_each(list_guides.TABLES)),
    (*GUIDES, "--specificity", "--nickases", "-o", "OUT/o.tsv", "--annotation", "IN/genes.bed"),
    *((*MEMS, "-o", name) for name in one_for_each([*find_mems.FORMATS, ".mums", ".mums.gz"])),
    *(
        (*PAIRS, "-o", name, "--mode", mode)
        for name, mode in itertools.product(
            one_for_each(align_pairs.FORMATS), PAIRS_TASK["mode"].value.words
        )
        if mode != "gatk" or name.endswith(".tsv")
    ),
    SEARCH,
    (*SEARCH, "--evalue", "--alignments", "OUT/o.m8"),
    *((*MAP, "-1", "IN/r.fq", "-o", name) for name in one_for_each(ALIGNMENT_ENDINGS)),
    (*MAP, "-1", "IN/tags.fq", "-o", "OUT/o.paf", "--comments"),
    (*MAP, "-1", "IN/r.fq", "-2", "IN/m.fq", "-o", "OUT/o.bam", "--sort", *CHECKS),
    (*MAP, "-1", "IN/r.fq", "-o", "OUT/o.cram", "--sort", *CHECKS),
    ("fq2bam", "--ref", "IN/g.fa", "--in-fq", "IN/r.fq", "IN/m.fq", "--out-bam", "OUT/o.bam",
     "--out-duplicate-metrics", "OUT/o.txt"),
    ("merge_alignments", "IN/u.bam", "-o", "OUT/o.bam", *CHECKS),
    ("estimate_map_insert_size", "--index", "IN/i", "--batches", "IN/b", "-o", "OUT/o.json"),
    ("estimate_allmap_insert_size", "--index", "IN/i", "--reads", "IN/pairs/0.reads",
     "--loci", "IN/pairs.loci", "-o", "OUT/o.json"),
    ("count_correct", "IN/s.bam", "-o", "OUT/o.json"),
    ("count_steps", "IN/l.stats.json", "-o", "OUT/o.tsv"),
    ("write_alignments", "--index", "IN/i", "--reads", "IN/b/0.reads", "--loci", "IN/loci",
     "-o", "OUT/o.tsv", "--stats", "OUT/o.stats.json"),
    ("merge_loci", "IN/l.tsv", "-o", "OUT/o.tsv"),
    ("merge_tables", "IN/l.tsv", "-o", "OUT/o.tsv"),
]  # fmt: skip

#: More inputs: pairs in steps, and simulated reads.
PAIRS_OF_BATCH = ("--index", "IN/i", "--reads", "IN/pairs/0.reads")
MORE_PREPARATIONS = [
    ("batch_reads", "-1", "IN/r.fq", "-2", "IN/m.fq", "-o", "IN/pairs"),
    ("seed_reads", *PAIRS_OF_BATCH, "-o", "IN/pairs.seeds", "--edits", "2"),
    ("locate_seeds", "--index", "IN/i", "--seeds", "IN/pairs.seeds", "-o", "IN/pairs.hits"),
    ("filter_candidates", *PAIRS_OF_BATCH, "--hits", "IN/pairs.hits", "-o", "IN/pairs.candidates"),
    ("extend_candidates", *PAIRS_OF_BATCH, "--candidates", "IN/pairs.candidates",
     "-o", "IN/pairs.loci"),
    ("simulate_reads", "--reference", "IN/g.fa", "-1", "IN/s.fq", "--reads", "9",
     "--read-length", "40"),
    ("map_reads", "--index", "IN/i", "-1", "IN/s.fq", "-o", "IN/s.bam"),
    ("index_reference", "IN/g.fa", "-o", "IN/g.index", "--prefix-length", "2"),
]  # fmt: skip

#: Programs without tables: they write indexes, reads, chain files, pages or a manifest.
WITHOUT_TABLES = {
    *("index_reference", "index_database", "simulate_genome", "simulate_reads"),
    *("doctor", "compile_programs", "cut_queries"),
    *("batch_reads", "seed_reads", "locate_seeds", "filter_candidates", "extend_candidates"),
    *("draw_report", "draw_timeline", "preview_table", "write_manifest", "report_offtargets"),
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for name, content in (INPUTS | MORE_INPUTS).items():
        (folder / name).write_bytes(content)
    for name, *words in [*PREPARATIONS, *MORE_PREPARATIONS]:
        done = run_here(name, *command(words, folder, folder), folder=folder)
        assert done.rc == 0, done.said
    return folder


def test_every_program_is_known():
    programs = {subcommand.program for subcommand in SUBCOMMANDS.values()}
    assert programs == {name for name, *_ in COMMANDS} | WITHOUT_TABLES


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words).replace("/", "."))
def test_every_table_is_read(given, tmp_path, words):
    name, *arguments = command(words, given, tmp_path)
    done = run_here(name, *arguments, folder=tmp_path)
    assert done.rc == 0, done.said
    main = arguments[arguments.index("--out-bam" if name == "fq2bam" else "-o") + 1]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in OTHERS]
    tables = {path: bwarp.read_table(path) for path in files}
    assert tables
    over = any(path.name.endswith(".over.tsv") and len(table) for path, table in tables.items())
    for path, table in tables.items():
        if str(path) == main:
            assert len(table) > 0 or over
        assert len(table.columns) > 1
        assert set(map(str, table.dtypes)) <= {"str", "int64", "float64"}
