"""Queries searched in parts give the same bytes as queries searched by one job."""

import re

import numpy as np
import pytest

#: For each target, its section without the queries, and its results.
SECTIONS = {
    "seeds": ("k: 14, step: 3, mismatches: 1, max_hits: 20", ("tsv", "over.tsv", "skipped.tsv")),
    "mems": ("min_length: 12, kind: maxmatch, strands: both", ("mums",)),
    "scan": ("similarity: 0.9, align: true, min_score: -30", ("tsv",)),
    "offtargets": (
        "pam: R, guides_have_pam: true, mismatches: 4, max_combinations: 3, "
        "populations: samples.tsv, variants: [one.vcf, two.vcf]",
        ("tsv", "guides.tsv", "unsearched.tsv", "html"),
    ),
    "search": ("database: database.fa, match: 2, mismatch: -3, top: 5", ("tsv",)),
}

N_QUERIES = 41


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy with queries of many lengths: changed parts of the genome, some of them equal."""
    copy = make_copy(forks=True)
    genome = "".join((copy / "small.fa").read_text().splitlines()[1:])
    rng = np.random.default_rng(5)
    records = []
    for number in range(N_QUERIES):
        start, length = int(rng.integers(9_000)), int(rng.choice([9, 30, 31, 90]))
        text = genome[start : start + length] if number % 5 else "ACGN" * 8
        records.append(f">q{number} more words\n{text[:50]}\n{text[50:]}\n")
    (copy / "queries.fa").write_text("".join(records))
    (copy / "database.fa").write_text("".join(records[::-1]))
    starts = rng.integers(9_000, size=N_QUERIES).tolist()
    guides = [
        f"guide{number}\t{genome[at : at + 17 + number % 5]}A\n" for number, at in enumerate(starts)
    ]
    (copy / "queries.txt").write_text("".join(guides))
    head = "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\ts1\ts2\n"
    for name, record in zip(
        ("one", "two"), (copy / "small.fa").read_text().split(">")[1:3], strict=True
    ):
        contig, text = record.split()[0], "".join(record.split("\n")[1:])
        body = [
            f"{contig}\t{at + 1}\t.\t{text[at]}\t{'A' if text[at] != 'A' else 'C'},<X>\t.\t.\t."
            f"\tGT\t0{'|/'[name == 'two']}1\t{at % 2}|0\n"
            for at in range(5, len(text), 7)
        ]
        (copy / f"{name}.vcf").write_text(head + "".join(body))
    (copy / "samples.tsv").write_text("s1\tnorth\ns2\tsouth\n")
    return copy


def queries_of(target):
    return "guides: queries.txt" if target == "offtargets" else "queries: queries.fa"


def settings(copy, target, parts):
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nbackend: cpu\n"
        f"{target}: {{{queries_of(target)}, parts: {parts}, {SECTIONS[target][0]}}}\n"
    )
    return (target, "--configfile", "mine.yaml")


def results_of(target):
    return [f"results/{target}/queries.{ending}" for ending in SECTIONS[target][1]]


@pytest.mark.parametrize(
    ("target", "parts"), [("seeds", 7), ("offtargets", 4), ("mems", 3), ("scan", 7), ("search", 3)]
)
def test_the_bytes_do_not_depend_on_parts(copy, target, parts):
    copy.snakemake(*settings(copy, target, 1))
    expected = [(copy / path).read_bytes() for path in results_of(target)]
    assert expected[0].count(b"\n") > N_QUERIES
    said = copy.snakemake(*settings(copy, target, parts))
    assert [(copy / path).read_bytes() for path in results_of(target)] == expected
    counts = dict(re.findall(r"^(\w+) +(\d+)$", said, re.MULTILINE))
    assert str(parts) in counts.values()
    left = [path for path in (copy / "results" / target).rglob("*") if path.is_file()]
    assert sorted(map(str, left)) == sorted(str(copy / path) for path in results_of(target))


def test_a_prepared_database_is_made_once(copy):
    copy.snakemake(*settings(copy, "search", 1))
    expected = (copy / "results/search/queries.tsv").read_bytes()
    for parts, rules in ((1, {"index_database"}), (3, set())):
        arguments = settings(copy, "search", parts)
        text = (copy / "mine.yaml").read_text().replace("parts:", "prepare: true, parts:")
        (copy / "mine.yaml").write_text(text)
        assert {"index_database"} & set(copy.planned(*arguments)) == rules
        copy.snakemake(*arguments, "--forcerun", "search_database")
        assert (copy / "results/search/queries.tsv").read_bytes() == expected
        assert (copy / "results/search/databases/database/database.json").is_file()
    (copy / "mine.yaml").write_text(text.replace("top: 5", "top: 4"))
    assert "index_database" not in copy.planned(*arguments)
    (copy / "mine.yaml").write_text(text.replace("match: 2, mismatch: -3", "matrix: BLOSUM62"))
    assert "index_database" in copy.planned(*arguments)


def test_off_targets_of_other_genomes(copy):
    contig, text = (copy / "small.fa").read_text().split(">")[1].split("\n", 1)
    (copy / "child.fa").write_text(f">{contig}\n{text.replace('ACA', 'ACC')}")
    tables = []
    for parts in (1, 3):
        (copy / "mine.yaml").write_text(
            "reference: small.fa\nbackend: cpu\nofftargets: {guides: queries.txt, pam: R, "
            f"guides_have_pam: true, mismatches: 5, parts: {parts}, "
            "genomes: [child.fa, small.fa]}\n"
        )
        copy.snakemake("offtargets", "--configfile", "mine.yaml")
        tables.append((copy / "results" / "offtargets" / "queries.tsv").read_text())
    assert tables[0] == tables[1]
    assert {"\tall\t", "\tchild\t", "\tsmall\t"} <= set(re.findall("\t[a-z]+\t", tables[0]))


def test_an_error_names_the_line_of_the_whole_file(copy):
    (copy / "wrong.fa").write_text("".join(f">q{n}\nACGT\n" for n in range(9)) + ">last\nAC!T\n")
    (copy / "wrong.yaml").write_text(
        "reference: small.fa\nbackend: cpu\nscan: {queries: wrong.fa, parts: 3, similarity: 0.9}\n"
    )
    said = copy.snakemake("scan", "--configfile", "wrong.yaml", rc=1)
    assert "bwarp cut-queries: error: wrong.fa, line 20: '!' is not a valid sequence letter" in said
    assert "rule scan_composition" not in said


def test_more_parts_than_queries(copy):
    said = copy.snakemake(*settings(copy, "search", 50), rc=1)
    assert (
        "bwarp cut-queries: error: queries.fa: 41 sequences cannot be cut into 50 parts: use fewer "
        "parts"
    ) in said


@pytest.mark.parametrize(
    ("target", "cutting", "searching"), [("scan", 1120, 2120), ("search", 1040, 2150)]
)
def test_memory_is_asked_for_by_size(copy, target, cutting, searching):
    """For files of ten million letters."""
    (copy / "large").mkdir(exist_ok=True)
    for name in ("ten.fa", "database.fa", "queries.fa"):
        with open(copy / "large" / name, "wb") as file:
            file.truncate(10_000_000)
    (copy / "large.yaml").write_text(
        "reference: large/ten.fa\nbackend: cpu\n"
        f"{target}: {{queries: large/queries.fa, parts: 3, "
        f"{SECTIONS[target][0].replace('database.fa', 'large/database.fa')}}}\n"
    )
    plan = copy.snakemake(target, "--configfile", "large.yaml", "-n")
    asked = [int(megabytes) for megabytes in re.findall(r"mem_mb=(\d+)", plan)]
    assert sorted(asked) == [cutting] + 3 * [searching]
