"""bwarp.read_table reads every table that a program can write, in every format that it declares."""

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
    "tags.fq": b"".join(
        b"@%b\n%b\n+\n%b\n" % (name, READ, b"I" * len(READ))
        for name in (b"a BC:Z:ACGT", b"b XX:i:3", b"c")
    ),
}

#: Endings of files that are not tables.
ALIGNMENTS_AND_SEQUENCES = ("sam", "bam", "cram", "fa", "fasta")


def one_for_each(endings) -> list[str]:
    names = (f"OUT/o.{ending.removeprefix('.')}" for ending in endings)
    return [name for name in names if not name.endswith(ALIGNMENTS_AND_SEQUENCES)]


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
    ("count_steps", "IN/l.stats.json", "-o", "OUT/o.tsv"),
    ("write_alignments", "--index", "IN/i", "--reads", "IN/b/0.reads", "--loci", "IN/loci",
     "-o", "OUT/o.tsv", "--stats", "OUT/o.stats.json"),
    ("merge_loci", "IN/l.tsv", "-o", "OUT/o.tsv"),
    ("merge_tables", "IN/l.tsv", "-o", "OUT/o.tsv"),
]  # fmt: skip

#: Programs without tables: they write indexes, alignments, reads, chain files, pages or JSON.
WITHOUT_TABLES = {
    *(
        "index_reference",
        "index_database",
        "fq2bam",
        "merge_alignments",
        "estimate_map_insert_size",
    ),
    *("simulate_genome", "simulate_reads", "doctor", "compile_programs"),
    *("batch_reads", "seed_reads", "locate_seeds", "filter_candidates", "extend_candidates"),
    *("estimate_allmap_insert_size", "cut_queries"),
    *("count_correct", "draw_timeline", "draw_report", "preview_table", "write_manifest"),
    "report_offtargets",
}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    for name, content in (INPUTS | MORE_INPUTS).items():
        (folder / name).write_bytes(content)
    for name, *words in PREPARATIONS:
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
    main = arguments[arguments.index("-o") + 1]
    tables = {path: bwarp.read_table(path) for path in tmp_path.iterdir()}
    over = any(path.name.endswith(".over.tsv") and len(table) for path, table in tables.items())
    for path, table in tables.items():
        if str(path) == main:
            assert len(table) > 0 or over
        assert len(table.columns) > 1
        assert set(map(str, table.dtypes)) <= {"str", "int64", "float64"}
