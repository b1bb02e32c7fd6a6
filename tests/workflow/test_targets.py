"""Each target makes its result, from its example and from config/config.yaml."""

import gzip
import json
import re

import pytest

RESULTS = {
    "seeds": ("results/seeds/primers.tsv", "query\tkmer_start\tstrand\tcontig\tposition"),
    "offtargets": ("results/offtargets/crispr_guides.tsv", "guide\tguide_aligned\tsite_aligned\t"),
    "guides": ("results/guides/guide_regions.tsv", "guide\tsequence\tpam\tcontig\t"),
    "primers": ("results/primers/primer_pairs.tsv", "pair\tcontig\tstart\tend\tlength\tstrand"),
    "mems": ("results/mems/primers.mums", "> "),
    "scan": ("results/scan/guides.tsv", "query\treference\t"),
    "pairs": ("results/pairs/haplotype_reads.tsv", "pair\treference\tquery\tscore\t"),
    "search": ("results/search/proteins.tsv", "query\ttarget\tscore\t"),
}

#: The pages of targets that have none of their own.
PAGES = {"guides": "offtargets"}


@pytest.fixture(scope="module")
def copy(make_copy):
    return make_copy(forks=True)


@pytest.mark.parametrize("target", RESULTS)
def test_the_example_of_a_target_is_what_its_page_shows(checkout, copy, target):
    copy.snakemake(target, "--configfile", f"config/examples/{target}.yaml")
    result, header = RESULTS[target]
    lines = (copy / result).read_text().splitlines()
    assert lines[0].startswith(header)
    assert len(lines) > 1
    page = (checkout / f"docs/{PAGES.get(target, target)}.md").read_text()
    shown = re.search(rf"`{result}` begins:\n\n```text\n(.*?)\n```", page, re.DOTALL)[1]
    assert lines[: shown.count("\n") + 1] == shown.splitlines()
    manifest = f"results/{target}/manifest.json"
    copy.snakemake(manifest, "--configfile", f"config/examples/{target}.yaml")
    made = json.loads((copy / manifest).read_text())
    outputs = [file["path"] for file in made["outputs"]]
    endings = {"seeds": (".tsv", ".over.tsv", ".skipped.tsv")}.get(target, ())
    assert result in outputs
    assert {f"{result.removesuffix('.tsv')}{ending}" for ending in endings} <= set(outputs)
    section = made["parameters"]["configuration"][target]
    named = {value for value in section.values() if (copy / str(value)).is_file()}
    inputs = {file["path"] for file in made["inputs"]}
    assert named
    assert inputs >= named
    assert (made["parameters"]["configuration"]["reference"] in inputs) == (
        target not in ("pairs", "search")
    )


def test_the_alignments_of_a_scan_are_what_its_page_shows(checkout, copy):
    copy.snakemake("scan", "--configfile", "config/examples/scan_align.yaml")
    lines = (copy / "results/scan/guides.tsv").read_text().splitlines()
    page = (checkout / "docs/scan.md").read_text()
    shown = re.search(r"which now begins:\n\n```text\n(.*?)\n```", page, re.DOTALL)[1]
    assert lines[: shown.count("\n") + 1] == shown.splitlines()


ALGORITHMS = {
    "seeds": ("find_seeds", "schemes", "backtracking"),
    "scan": ("scan_composition", "auto", "gather"),
    "pairs": ("align_pairs", "band", "run-lengths"),
    "search": ("search_database", "profile", "prefix-scan"),
}


@pytest.mark.parametrize("target", ALGORITHMS)
def test_an_algorithm_is_what_the_program_gets(copy, target):
    rule, default, other = ALGORITHMS[target]
    for given, expected in (("", default), (f"algorithm: {other}", other)):
        arguments = ("--configfile", f"config/examples/{target}.yaml")
        if given:
            arguments += ("--config", f"{target}={{{given}}}")
        said = copy.snakemake(target, "-n", "-p", "-R", rule, *arguments)
        (command,) = re.findall(rf"^Shell command: .*bwarp {target} .*$", said, re.MULTILINE)
        assert command.count("--algorithm") == 1
        assert f" --algorithm {expected} " in command


@pytest.mark.parametrize("target", ["seeds", "scan"])
def test_another_algorithm_gives_the_same_result(copy, target):
    arguments = (target, "--configfile", f"config/examples/{target}.yaml")
    copy.snakemake(*arguments)
    result = copy / RESULTS[target][0]
    before = result.read_bytes()
    rule, _, other = ALGORITHMS[target]
    copy.snakemake(*arguments, "-f", "-R", rule, "--config", f"{target}={{algorithm: {other}}}")
    assert result.read_bytes() == before


def test_the_manifest_of_a_target_whose_section_is_missing(copy, tmp_path):
    (tmp_path / "mine.yaml").write_text("reference: small.fa\n")
    (tmp_path / "small.fa").write_text(">a\nACGT\n")
    own = ("-s", copy / "Snakefile", "--configfile", "mine.yaml", "-n")
    said = copy.snakemake("results/scan/manifest.json", *own, cwd=tmp_path, rc=2)
    assert "  the configuration, scan: is missing: see config/examples/scan.yaml\n" in said
    said = copy.snakemake("manifest", *own, cwd=tmp_path, rc=2)
    assert "  the configuration, samples: is missing: write the path of a sample sheet" in said


def test_the_targets_of_the_plain_configuration(copy):
    planned = copy.planned(*RESULTS)
    assert {
        "find_seeds", "find_offtargets", "design_guides", "find_products", "find_mems",
        "scan_composition", "align_pairs", "search_database",
    } <= set(planned)  # fmt: skip


def test_a_target_whose_section_is_missing(copy, tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text("reference: small.fa\n")
    (tmp_path / "small.fa").write_text(">a\nACGT\n")
    said = copy.snakemake("-s", copy / "Snakefile", "-n", "seeds", cwd=tmp_path, rc=2)
    assert said.endswith(
        "Nothing was run: there is a problem in the configuration.\n  the configuration, seeds: "
        "is missing: see config/examples/seeds.yaml\nconfig/README.md explains every key and "
        "column.\n"
    )


def test_a_folder_without_a_configuration(copy, tmp_path):
    (tmp_path / "small.fa").write_text(">a\nACGT\n")
    own = ("index", "-n", "-s", copy / "Snakefile")
    assert "rule index_reference:" in copy.snakemake(
        *own, "--config", "reference=small.fa", cwd=tmp_path
    )
    assert copy.snakemake(*own, cwd=tmp_path, rc=2).endswith(
        "  the configuration, reference: is missing: write the path of a FASTA file, plain or "
        "gz\nconfig/README.md explains every key and column.\n"
    )


@pytest.mark.parametrize("target", ["map", "qc", "report"])
def test_reads_without_a_sample_sheet(copy, tmp_path, target):
    (tmp_path / "mine.yaml").write_text("reference: small.fa\n")
    (tmp_path / "small.fa").write_text(">a\nACGT\n")
    own = ("-s", copy / "Snakefile", "--configfile", "mine.yaml", "-n")
    assert copy.snakemake(target, *own, cwd=tmp_path, rc=2).endswith(
        "Nothing was run: there is a problem in the configuration.\n  the configuration, "
        "samples: is missing: write the path of a sample sheet such as "
        "config/samples.tsv\nconfig/README.md explains every key and column.\n"
    )


MAPPING = {"index_reference", "map_reads", "merge_alignments", "multiqc", "report"}


def test_a_genome_of_ones_own_is_not_searched_for_the_demo(copy):
    (copy / "own.fq").write_text("@r\nACGT\n+\nIIII\n")
    (copy / "own.tsv").write_text("sample\tfq1\ns\town.fq\n")
    own = ("--config", "reference=small.fa", "samples=own.tsv")
    assert set(copy.planned(*own)) == MAPPING


def test_a_list_of_alt_contigs_beside_the_genome_is_read_with_it(copy, tmp_path):
    (tmp_path / "small.fa").write_text(">a\nACGT\n")
    own = ("index", "-n", "-s", copy / "Snakefile", "--config", "reference=small.fa")
    assert "input: small.fa\n" in copy.snakemake(*own, cwd=tmp_path)
    (tmp_path / "small.fa.alt").write_text("a\n")
    assert "input: small.fa, small.fa.alt\n" in copy.snakemake(*own, cwd=tmp_path)


def test_a_configuration_with_nothing_but_a_genome_and_reads(copy, tmp_path):
    (tmp_path / "mine.yaml").write_text("reference: g.fa\nsamples: s.tsv\n")
    (tmp_path / "g.fa").write_text(">a\nACGT\n")
    (tmp_path / "own.fq").write_text("@r\nACGT\n+\nIIII\n")
    (tmp_path / "s.tsv").write_text("sample\tfq1\ns\town.fq\n")
    own = ("-s", copy / "Snakefile", "--configfile", "mine.yaml")
    said = copy.snakemake("-n", *own, cwd=tmp_path)
    assert set(re.findall(r"^(?:local)?rule (\w+):$", said, re.MULTILINE)) == MAPPING | {"default"}


@pytest.mark.parametrize(
    ("target", "settings", "needed"),
    [
        ("seeds", {"mismatches": 0}, False),
        ("seeds", {"mismatches": 1}, True),
        ("mems", {"kind": "maxmatch"}, False),
        ("mems", {"kind": "mum"}, True),
        ("mems", {}, True),
        ("index", {}, False),
        ("map", {}, False),
    ],
)
def test_the_reverse_is_made_where_a_search_needs_it(copy, target, settings, needed):
    lines = [f"  {key}: {value}\n" for key, value in settings.items()]
    queries = "  queries: config/examples/primers.fa\n"
    own = f"{target}:\n{queries}{''.join(lines)}" if target in ("seeds", "mems") else ""
    (copy / "mine.yaml").write_text(f"reference: small.fa\n{own}")
    planned = copy.planned(target, "--configfile", "mine.yaml")
    assert planned.count("index_reference") == 1
    assert planned.count("add_reverse") == int(needed)


def test_the_reverse_is_added_to_the_index_that_is_there(copy):
    (copy / "mine.yaml").write_text(
        "reference: small.fa\n"
        "seeds:\n  queries: config/examples/primers.fa\n  k: whole\n  mismatches: 0\n"
        "mems:\n  queries: config/examples/primers.fa\n  kind: maxmatch\n"
    )
    own = ("--configfile", "mine.yaml")
    copy.snakemake("seeds", "mems", *own)
    assert not (copy / "results/index/small/reverse_blocks.npy").exists()
    (copy / "more.yaml").write_text("seeds:\n  mismatches: 2\n")
    more = (*own, "more.yaml")
    assert sorted(copy.planned("seeds", "mems", *more)) == [
        "add_reverse", "find_seeds", "preview_table"
    ]  # fmt: skip
    copy.snakemake("seeds", "mems", *more)
    assert "reverse BWT" in (copy / "results/index/small.with_reverse.txt").read_text()
    # Nothing is to be done for the other targets, although the index has one more part.
    assert copy.planned("seeds", "mems", *more) == []
    assert copy.planned("index", "mems", *own) == []
    # A rebuilt index has no reverse BWT, so it is added again.
    assert sorted(copy.planned("seeds", *more, "--forcerun", "index_reference")) == [
        "add_reverse", "find_seeds", "index_reference", "preview_table"
    ]  # fmt: skip


def test_seeds_beside_a_pam(copy):
    genome = (copy / "small.fa").read_text().split("\n")[1]
    at = genome.index("GG", 400)
    (copy / "sites.fa").write_text(f">q\n{genome[at - 21 : at - 1]}\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\n"
        "seeds: {queries: sites.fa, mismatches: 0, pam: NGG, pam_side: 3, site_sequence: true}\n"
    )
    copy.snakemake("results/seeds/sites.tsv", "--configfile", "mine.yaml")
    header, *rows = (copy / "results/seeds/sites.tsv").read_text().splitlines()
    assert header.endswith("\tsite")
    assert f"q\t0\t+\t{contig_name(copy)}\t{at - 21}" in rows[0]
    assert rows[0].endswith(genome[at - 21 : at - 1])
    # Another reference has no such list.
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nseeds: {queries: sites.fa, pam: TTTTTTTT}\n"
    )
    copy.snakemake("results/seeds/sites.tsv", "--configfile", "mine.yaml")
    assert len((copy / "results/seeds/sites.tsv").read_text().splitlines()) == 1


def contig_name(copy):
    return (copy / "small.fa").read_text().split()[0][1:]


def test_a_value_of_zero_reaches_the_program(copy):
    (copy / "mine.yaml").write_text("reference: small.fa\nindex:\n  prefix_length: 0\n")
    copy.snakemake("index", "--configfile", "mine.yaml")
    assert "prefix_length 0\n" in (copy / "results/index/small.txt").read_text()


def test_the_demo_reads(copy):
    copy.snakemake("resources/demo/reads_1.fq.gz")
    first, second = (
        gzip.decompress((copy / f"resources/demo/reads_{mate}.fq.gz").read_bytes()).splitlines()
        for mate in (1, 2)
    )
    assert len(first) == len(second) == 4 * 5000
