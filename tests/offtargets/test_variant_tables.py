"""bwarp offtargets --variants: its tables against haplotypes written out, and its errors."""

import csv
import gzip
import os
import threading
from dataclasses import replace

import numpy as np
import pysam
import pytest

from bwarp.index.store import save_index
from bwarp.offtargets import alternative_sites as alternative_sites_module
from bwarp.variants import files
from tests.helpers.cases.random_variants import (
    HEADER,
    haplotypes_of,
    phased,
    random_lines,
    vcf_text,
)
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.offtargets_oracle import sites
from tests.helpers.oracles.seed_hits_oracle import random_bases
from tests.helpers.oracles.variants_oracle import alternative_sites, applied, written_out
from tests.helpers.programs.programs_here import run_here
from tests.helpers.programs.refusal import refusal
from tests.offtargets.test_find import guides_from, text_of

SCRIPT = "find_offtargets.py"
CONTIGS = [random_bases(300, 8), b"GGA" * 30 + random_bases(80, 9)]
GUIDE = "GAGTCCGAGCAGAAGAAGAA"
PLAIN = 15


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "small.index"
    save_index(index_of(CONTIGS, with_reverse=False), folder)
    return folder


def write_guides(path, guides):
    path.write_text("".join(f">{name}\n{guide}\n" for name, guide in guides.items()))
    return path


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Return guides, lines, genotypes, and the files of guides and variants."""
    folder = tmp_path_factory.mktemp("cohort")
    rng = np.random.default_rng(4)
    lines = random_lines(text_of(CONTIGS), rng, 25)
    genotypes = phased(lines, 4, rng, haploid="contig1")
    guides = guides_from(CONTIGS, 2, 18, 20, 6)
    variants = folder / "variants.vcf"
    variants.write_text(vcf_text(lines, genotypes))
    return guides, lines, genotypes, write_guides(folder / "guides.fa", guides), variants


def key_of(row):
    return (
        row["guide"], row["guide_aligned"], row["site_aligned"], row["pam"], row["contig"],
        int(row["start"]), int(row["end"]), row["strand"], int(row["mismatches"]),
        int(row["dna_bulge"]), int(row["rna_bulge"]),
    )  # fmt: skip


def borders_of(guides, limits, haplotypes):
    """Return the borders of sites on each haplotype: guide, contig, strand, position."""
    found = []
    for number in range(8):
        there = set()
        for contig, lists in haplotypes.items():
            if contig == "contig1" and number == 1:
                continue
            text, starts, ends = written_out(text_of(CONTIGS)[contig], applied(lists[number]))
            for row in sites({contig: text}, guides, ["NGG"], 3, *limits):
                name, *_, start, end, strand = row[:8]
                there.add((name, contig, strand, ends[end - 1] if strand == "+" else starts[start]))
        found.append(there)
    return found


POPULATIONS = {
    "north": ("sample0", "sample2", "unknown"),
    "all": [f"sample{i}" for i in range(4)],
    "nobody": ["unknown"],
}


def shares_of(haplotypes, contig):
    """Return the text of the share of each population; sample 0 is haploid on contig1."""
    texts = []
    for name, samples in list(POPULATIONS.items())[:2]:
        members = [h for h in range(8) if f"sample{h // 2}" in samples]
        members = [h for h in members if contig != "contig1" or h != 1]
        texts.append(f"{name}={len(set(members) & set(haplotypes)) / len(members):g}")
    return ";".join(texts)


def test_rows_are_those_of_all_haplotypes(run_program, index, cohort, tmp_path):
    guides, lines, genotypes, guide_file, variants = cohort
    limits = (6, 1, 1)
    table = tmp_path / "samples.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for b, some in POPULATIONS.items() for a in some))
    run = ("--index", index, "--guides", guide_file, "--mismatches", 6, "--dna-bulges", 1,
           "--rna-bulges", 1)  # fmt: skip
    assert run_program(SCRIPT, *run, "-o", tmp_path / "plain.tsv").rc == 0
    done = run_program(
        SCRIPT, *run, "-o", tmp_path / "out.tsv", "--variants", variants, "--samples",
        "--populations", table,
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    rows = rows_of(tmp_path / "out.tsv")
    plain = (tmp_path / "plain.tsv").read_text().splitlines()
    lines_out = (tmp_path / "out.tsv").read_text().splitlines()
    kept = [line for line in lines_out[1:] if "\treference\t" in line]
    assert ["\t".join(line.split("\t")[:PLAIN]) for line in kept] == plain[1:]
    haplotypes = haplotypes_of(lines, genotypes)
    wanted = alternative_sites(text_of(CONTIGS), guides, ["NGG"], 3, limits, haplotypes)
    wanted = {
        (*key[:-1], ",".join(edit[5] for edit in key[-1])): numbers
        for key, numbers in wanted.items()
    }
    found = {(*key_of(row), row["variants"]): row for row in rows if row["origin"] == "alternative"}
    assert set(found) == set(wanted)
    assert len(wanted) > 20
    samples = {
        (row["guide"], row["contig"], row["start"], row["end"], row["strand"], row["variants"]):
        row["samples"].split(",")
        for row in rows_of(tmp_path / "out.samples.tsv")
    }  # fmt: skip
    for key, numbers in wanted.items():
        row = found[key]
        assert row["haplotypes"] == str(len(numbers))
        assert row["frequency"] == f"{len(numbers) / (7 if key[4] == 'contig1' else 8):.6f}"
        assert row["phase"] == "phased"
        assert row["populations"] == shares_of(numbers, key[4])
        names = samples[key[0], key[4], str(key[5]), str(key[6]), key[7], key[-1]]
        assert names == [f"sample{i}" for i in sorted({number // 2 for number in numbers})]
    there = borders_of(guides, limits, haplotypes)
    n_lost = 0
    for row in rows:
        if row["origin"] == "reference":
            border = int(row["end"] if row["strand"] == "+" else row["start"])
            key = (row["guide"], row["contig"], row["strand"], border)
            lost = sum(key not in one for one in there) - (row["contig"] == "contig1")
            assert row["lost"] == str(lost), row
            if row["haplotypes"] in ("0", "7" if row["contig"] == "contig1" else "8"):
                share = int(row["haplotypes"] != "0")
                assert row["populations"] == f"north={share};all={share}"
            assert row["effect"] == ("loss" if lost else "")
            n_lost += lost
    assert n_lost > 5


def test_all_formats_of_files_and_all_threads_give_the_same_tables(
    run_program, index, cohort, tmp_path
):
    *_, guide_file, variants = cohort
    contigs = "".join(
        f"##contig=<ID={name},length={len(text)}>\n" for name, text in text_of(CONTIGS).items()
    )
    text = variants.read_text().replace(
        "#CHROM", f'{contigs}##FORMAT=<ID=GT,Number=1,Type=String,Description="x">\n#CHROM'
    )
    plain = tmp_path / "plain.vcf"
    plain.write_text(text.replace("\n", "\r\n"))
    packed = tmp_path / "packed.vcf.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    binary = tmp_path / "binary.bcf"
    (tmp_path / "unix.vcf").write_text(text)
    with (
        pysam.VariantFile(str(tmp_path / "unix.vcf")) as source,
        pysam.VariantFile(str(binary), "wb", header=source.header) as target,
    ):
        for record in source:
            target.write(record)
    tables = set()
    for number, path in enumerate([variants, plain, packed, binary]):
        output = tmp_path / "out.tsv"
        done = run_program(
            SCRIPT, "--index", index, "--guides", guide_file, "-o", output, "--mismatches", 5,
            "--variants", path, "--threads", 1 + number % 2,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        tables.add(output.read_bytes())
    assert len(tables) == 1


def test_a_pam_that_is_made_and_one_that_is_lost(run_program, tmp_path):
    text = f"TTACA{GUIDE}TGGATTACCATGC{GUIDE}TGATTACCAGT"
    save_index(index_of([text.encode()], with_reverse=False), tmp_path / "i")
    guides = write_guides(tmp_path / "g.fa", {"g": GUIDE})
    lost, made = text.index("TGGATT") + 2, text.rindex("TGATT") + 2
    body = (
        f"contig0\t{lost + 1}\trs1\tG\tC\t.\t.\tAC=30;AN=100;AF_afr=0.25;EAS_AF=0.01;lcr;vep=A|x\n"
        f"contig0\t{made + 1}\trs2\tA\tG,<DEL>\t.\t.\tAF=0.5,0.1;AF_afr=0.125,0\n"
    )
    (tmp_path / "v.vcf").write_text(f"{HEADER}\n{body}")
    done = run_program(
        SCRIPT, "--index", tmp_path / "i", "--guides", guides, "-o", tmp_path / "o.tsv",
        "--variants", tmp_path / "v.vcf", "--mismatches", 1,
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "2 variants searched: 1 alternative site; 1 allele not searched"
    )
    first, second = rows_of(tmp_path / "o.tsv")
    assert (first["origin"], first["pam_change"], first["effect"]) == ("reference", "lost", "loss")
    assert (first["variants"], first["phase"]) == (f"contig0:{lost + 1}:G:C", "unphased")
    assert (first["frequency"], first["haplotypes"], first["lost"]) == ("0.700000", "", "")
    wanted = {
        "origin": "alternative", "variants": f"contig0:{made + 1}:A:G", "variant_ids": "rs2",
        "phase": "unphased", "frequency": "0.500000", "populations": "afr=0.125", "haplotypes": "",
        "pam_change": "made", "effect": "gain", "cfd": "1.000000", "pam": "TGG",
    }  # fmt: skip
    assert {name: second[name] for name in wanted} == wanted
    change = float(second["cfd"]) - float(second["reference_cfd"])
    assert float(second["cfd_change"]) == pytest.approx(change, abs=2e-6)
    assert (tmp_path / "o.unsearched.tsv").read_text().splitlines()[1:] == [
        f"contig0\t{made + 1}\trs2\tA\t<DEL>\tthe ALT allele is not a sequence"
    ]


def test_more_combinations_than_allowed_are_listed(run_program, index, tmp_path):
    text = CONTIGS[0].decode()
    at = text.index("GG", 60)
    guides = write_guides(tmp_path / "g.fa", {"g": text[at - 21 : at - 1]})
    body = "".join(
        f"contig0\t{i + 1}\t.\t{text[i]}\t{'A' if text[i] != 'A' else 'C'}\t.\t.\t.\n"
        for i in range(at - 14, at - 4)
    )
    (tmp_path / "v.vcf").write_text(f"{HEADER}\n{body}")
    counts = {}
    for limit in (5, 1024):
        run = ("--index", index, "--guides", guides, "-o", tmp_path / "o.tsv", "--mismatches", 3)
        more = ("--variants", tmp_path / "v.vcf", "--max-combinations", limit)
        assert run_program(SCRIPT, *run, *more).rc == 0
        listed = rows_of(tmp_path / "o.unsearched.tsv")
        counts[limit] = len(rows_of(tmp_path / "o.tsv")), len(listed)
        for row in listed:
            assert row["reason"].startswith("combinations of more than ")
    # 10 variants, up to 3 at a time, and the site of the reference.
    assert counts[1024] == (1 + 10 + 45 + 120, 0)
    assert counts[5][0] < counts[1024][0]
    assert counts[5][1] > 3


def test_parts_of_guides_are_searched_in_the_same_combinations(run_program, index, tmp_path):
    text = CONTIGS[0].decode()
    at = text.index("GG", 60)
    guides = {f"g{n}": text[at - 1 - n : at - 1] for n in (17, 30, 20)}
    body = "".join(
        f"contig0\t{i + 1}\t.\t{text[i]}\t{'A' if text[i] != 'A' else 'C'}\t.\t.\t.\n"
        for i in range(at - 40, at - 4, 3)
    )
    (tmp_path / "v.vcf").write_text(f"{HEADER}\n{body}")
    made = []
    for part in ("1/1", "1/3", "2/3", "3/3"):
        done = run_program(
            SCRIPT, "--index", index, "--guides", write_guides(tmp_path / "g.fa", guides), "-o",
            tmp_path / "o.tsv", "--mismatches", 4, "--variants", tmp_path / "v.vcf", "--part", part,
            "--max-combinations", 20,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        made.append((rows_of(tmp_path / "o.tsv"), rows_of(tmp_path / "o.unsearched.tsv")))
    (rows, listed), *parts = made
    assert sum((part for part, _ in parts), []) == rows
    assert [others for _, others in parts] == [listed] * 3
    assert len(listed) > 3
    # No temporary file is left.
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"g.fa", "v.vcf", "o.tsv", "o.guides.tsv", "o.unsearched.tsv"}


def test_where_a_contig_is_cut_makes_no_difference(tmp_path, monkeypatch):
    """The first sample has one haplotype from the middle of the contig on."""
    contigs = [random_bases(4_000, 11)]
    save_index(index_of(contigs, with_reverse=False), tmp_path / "i")
    rng = np.random.default_rng(12)
    lines = [line for line in random_lines(text_of(contigs), rng, 120) if not 900 < line[1] < 1300]
    genotypes = phased(lines, 3, rng)
    genotypes[[line[1] > 2_000 for line in lines], 0, 1] = -1
    (tmp_path / "v.vcf").write_text(vcf_text(lines, genotypes))
    guides = write_guides(tmp_path / "g.fa", guides_from(contigs, 3, 15, 16, 40))
    run = (
        "--index", tmp_path / "i", "--guides", guides, "--pam", "R", "--mismatches", 4,
        "--variants", tmp_path / "v.vcf", "--samples", "-o", tmp_path / "o.tsv",
    )  # fmt: skip
    endings = (".tsv", ".samples.tsv", ".unsearched.tsv", ".guides.tsv")
    made, said = [], []
    for is_cut in (False, True):
        if is_cut:
            for module in (files, alternative_sites_module):
                monkeypatch.setattr(module, "context_of", lambda reach: reach + 100)
            monkeypatch.setattr(files, "_BLOCK_BYTES", 200)
            monkeypatch.setattr(files, "_TEXT_AT_ONCE", 1)
        done = run_here("find_offtargets", *run, folder=tmp_path)
        assert done.rc == 0, done.said
        made.append([(tmp_path / f"o{ending}").read_bytes() for ending in endings])
        said.append(done.said.splitlines()[-1])
    assert (made[0], said[0]) == (made[1], said[1])
    counts = {}
    for row in rows_of(tmp_path / "o.tsv"):
        if row["origin"] == "reference" and not row["variants"]:
            counts.setdefault(int(row["start"]) > 2_050, set()).add(row["haplotypes"])
    assert counts == {False: {"6"}, True: {"5"}}


@pytest.fixture
def refused(checkout, monkeypatch, capsys, index, cohort, tmp_path):
    """Return a function that runs the program on variants: exit code and last line."""
    script = checkout / "scripts" / SCRIPT
    path = tmp_path / "v.vcf"

    def run(text, *more, output="o.tsv"):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        arguments = (
            "--index", index, "--guides", cohort[3], "-o", tmp_path / output, "--variants", path,
        )  # fmt: skip
        return refusal(script, (*arguments, *more), monkeypatch, capsys)

    return run


def test_broken_files(refused):
    base = CONTIGS[0][9:10].decode()
    line = f"contig0\t10\t.\t{base}\t{base}A\t.\t.\t."
    genotyped = f"{HEADER}\tFORMAT\ts1\n"
    for text, said in {
        "": "neither VCF nor BCF",
        ">contig0\nACGT\n": "neither VCF nor BCF",
        f"{HEADER}\ncontig0\t10\t.\tA\n": "line 3: a variant must have at least 8 columns",
        f"{HEADER}\n{line}\ncontig0\tx\t.\tA\tC\t.\t.\t.\n": "line 4: POS is not a whole number",
        f"{HEADER}\n{line}\n{line.replace('10', '9')}\n": "contig0 are not in order",
        f"{HEADER}\n{line}\n{line.replace('contig0', 'contig1')}\n{line}\n": "contig0 are not in",
        f"{HEADER}\n{line.replace('contig0', '7')}\n": "the first variant is on 7, but the first",
        f"{HEADER}\ncontig0\t10\t.\t{'A' if base != 'A' else 'C'}\tG\t.\t.\t.\n": "REF of no",
        f"{genotyped}{line}\tGT\n": "line 3: there must be 1 genotype",
        f"{genotyped}{line}\tGT\t0|1\t0|0\n": "line 3: there must be 1 genotype",
        f"{genotyped}{line}\tGT\t0|1|1\n": "line 3: a genotype has more than 2 alleles",
        f"{genotyped}{line}\tGT\t0+1\n": "line 3: a genotype has characters other",
        b"BCF\x02\x02damaged": "damaged BCF",
    }.items():  # fmt: skip
        rc, last = refused(text)
        assert rc == 1, text
        assert said in last


def test_contigs_with_and_without_chr(checkout, monkeypatch, capsys, cohort, tmp_path):
    reference = index_of([CONTIGS[0]], with_reverse=False)
    base = CONTIGS[0][9:10].decode()
    for name, other in (("chr20", "20"), ("20", "chr20")):
        named = replace(reference, reference=replace(reference.reference, names=(name,)))
        save_index(named, tmp_path / name)
        path = tmp_path / "v.vcf"
        path.write_text(f"{HEADER}\n{other}\t10\t.\t{base}\t{base}A\t.\t.\t.\n")
        run = (
            "--index", tmp_path / name, "--guides", cohort[3], "-o", tmp_path / "o.tsv",
            "--variants", path,
        )  # fmt: skip
        rc, last = refusal(checkout / "scripts" / SCRIPT, run, monkeypatch, capsys)
        assert (rc, f"the variants are on {other}, but the index has {name}: use" in last) == (
            1,
            True,
        )
        assert last.rstrip().endswith(f"{other} {name}")


def test_truncated_files(refused, cohort, tmp_path):
    text = cohort[4].read_text()
    whole = tmp_path / "whole.vcf.gz"
    with pysam.BGZFile(str(whole), "wb") as file:
        file.write(text.encode())
    packed = whole.read_bytes()
    for length in (len(packed) // 2, len(packed) - 30):
        rc, last = refused(packed[:length])
        assert (rc, "damaged" in last or "truncated" in last) == (1, True), last


def test_spanning_deletions(run_program, index, cohort, tmp_path):
    """A star is a deletion of another line: the haplotype has the deletion, and no other allele."""
    text = CONTIGS[0].decode()
    other = next(base for base in "ACGT" if base not in text[51:53])
    tables = []
    for alts, first in ((f"*,{other}", "1|2"), (other, "0|1")):
        body = (
            f"contig0\t50\trs1\t{text[49:54]}\t{text[49]}\t.\t.\t.\tGT\t1|0\t0|0\n"
            f"contig0\t52\trs2\t{text[51]}\t{alts}\t.\t.\t.\tGT\t{first}\t0|0\n"
        )
        (tmp_path / "v.vcf").write_text(f"{HEADER}\tFORMAT\ts1\ts2\n{body}")
        guides = write_guides(tmp_path / "g.fa", {"g": text[34:49] + text[53:58]})
        done = run_program(
            SCRIPT, "--index", index, "--guides", guides, "-o", tmp_path / "o.tsv", "--pam",
            "none", "--mismatches", 2, "--variants", tmp_path / "v.vcf",
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        rows = rows_of(tmp_path / "o.tsv")
        assert "1" in {row["haplotypes"] for row in rows if row["variant_ids"] == "rs1"}
        tables.append([{**row, "variants": ""} for row in rows])
    assert tables[0] == tables[1]


def test_wrong_use(refused):
    text = f"{HEADER}\n"
    for more, output, said in (
        ((), "o.bed", "--variants requires the columns of bwarp"),
        (("--format", "crispor"), "o.tsv", "--variants requires the columns of bwarp"),
        (("--max-combinations", "0"), "o.tsv", "--max-combinations"),
    ):
        rc, last = refused(text, *more, output=output)
        assert (rc, said in last) == (2, True), last


def test_alleles_that_cannot_be_searched_are_listed(run_program, index, cohort, tmp_path):
    text = CONTIGS[0].decode()
    other = "A" if text[19] != "A" else "C"
    body = [
        ("contig0", 10, text[9], f"{text[9]}G", None),
        ("contig0", 12, text[11], "<INS>", "the ALT allele is not a sequence"),
        ("contig0", 13, text[12], f"{text[12]}[contig1:5[", "the ALT allele is not a sequence"),
        ("contig0", 14, text[13], f"*,{text[13]}N", "REF, ALT or the reference has an ambiguous"),
        ("contig0", 15, text[14], text[14] + "ACGTT" * 11, "more than 50 bases"),
        ("contig0", 16, text[15:75], text[15], "more than 50 bases"),
        ("contig0", 20, other, "G" if other != "G" else "T", "REF differs"),
        ("contig0", 299, text[298:300] + "A", text[298], "the position is beyond"),
        ("contig0", 10**10, "A", "C", "the position is beyond"),
        ("nothing", 1, "A", "C", "the reference has no such contig"),
    ]
    lines = "".join(f"{c}\t{at}\t.\t{ref}\t{alt}\t.\t.\t.\n" for c, at, ref, alt, _ in body)
    (tmp_path / "v.vcf").write_text(f"{HEADER}\n{lines}")
    done = run_program(
        SCRIPT, "--index", index, "--guides", cohort[3], "-o", tmp_path / "o.tsv", "--variants",
        tmp_path / "v.vcf",
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    listed = rows_of(tmp_path / "o.unsearched.tsv")
    assert len(listed) == 9
    for row, (contig, at, _, _, reason) in zip(listed, body[1:], strict=True):
        assert (row["contig"], row["position"]) == (contig, str(at))
        assert row["reason"].startswith(reason)


def test_a_contig_in_two_files(refused, tmp_path):
    base = CONTIGS[0][9:10].decode()
    text = f"{HEADER}\ncontig0\t10\t.\t{base}\t{base}A\t.\t.\t.\n"
    (tmp_path / "w.vcf").write_text(text)
    rc, last = refused(text, tmp_path / "w.vcf")
    assert (rc, "variants of contig0 are also in" in last) == (1, True), last


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a function that searches a site whose PAM a variant makes: the alternative rows."""
    folder = tmp_path_factory.mktemp("made")
    text = f"TTACA{GUIDE}TGATTACCAGT"
    save_index(index_of([text.encode()], with_reverse=False), folder / "i")
    guides = write_guides(folder / "g.fa", {"g": GUIDE})
    start = f"contig0\t{text.rindex('TGATT') + 3}\t.\tA\t"

    def alternative_rows(run_program, alts, kind, genotypes, times=1, more=()):
        columns = "".join(f"\ts{i}" for i in range(len(genotypes)))
        line = "\t".join((f"{start}{alts}", ".", ".", ".", kind, *genotypes))
        (folder / "v.vcf").write_text(f"{HEADER}\tFORMAT{columns}\n{line}\n")
        done = run_program(
            SCRIPT, "--index", folder / "i", "--guides", guides, "-o", folder / "o.tsv",
            "--mismatches", 1, "--variants", *[folder / "v.vcf"] * times, *more,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        return [row for row in rows_of(folder / "o.tsv") if row["origin"] == "alternative"]

    return alternative_rows


def test_alleles_that_nobody_carries_make_no_sites(run_program, made):
    for genotypes in (("./0", "0|0"), ("0/.", "0/0"), (".", "0")):
        assert made(run_program, "G", "GT", genotypes) == []
    assert made(run_program, "C,G", "GT", ("0/1", "0/0")) == []
    (row,) = made(run_program, "C,G", "GT", ("0/2", "0/0"))
    assert (row["phase"], row["frequency"]) == ("unphased", "0.250000")


def test_populations_of_unphased_genotypes(run_program, made, tmp_path):
    table = tmp_path / "p.tsv"
    table.write_text("# samples\ns0 A\ns1 A\n\ns1 B\n")
    (row,) = made(run_program, "G", "GT", ("0/1", "1/1", "0/0"), more=("--populations", table))
    assert (row["phase"], row["populations"]) == ("unphased", "A=0.75;B=1")
    assert row["frequency"] == "0.500000"


def test_wrong_populations(refused, cohort, tmp_path):
    table, text = tmp_path / "p.tsv", cohort[4].read_text()
    for listed, variants, said in (
        ("sample0 A\nsample1\n", text, "p.tsv, line 2: found 1 column: write a sample and"),
        ("sample0 A=B\n", text, "p.tsv, line 1: found 2 columns: write a sample and"),
        ("other A\n", text, "no sample has a population: the first sample is sample0"),
        ("other A\n", f"{HEADER}\n", "no genotypes, which --populations requires"),
    ):
        table.write_text(listed)
        rc, last = refused(variants, "--populations", table)
        assert (rc, said in last) == (1, True), last


def test_a_phase_before_the_first_allele(run_program, made):
    (row,) = made(run_program, "G", "GT", ("|0|1", "/0/0"))
    assert (row["phase"], row["frequency"]) == ("phased", "0.250000")


def test_without_genotypes_frequencies_are_unknown(run_program, made):
    (row,) = made(run_program, "G", "DP", ("12", "3"))
    assert (row["phase"], row["frequency"], row["haplotypes"]) == ("unphased", "", "")


def test_a_file_given_twice_is_searched_once(run_program, made):
    assert len(made(run_program, "G", "GT", ("0|1",), times=2)) == 1


def test_bcf_in_a_pipe(checkout, monkeypatch, capsys, index, cohort, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"BCF\x02\x02",))
    writer.start()
    arguments = "--index", index, "--guides", cohort[3], "-o", tmp_path / "o", "--variants", pipe
    rc, last = refusal(
        checkout / "scripts" / SCRIPT, (*arguments, "--format", "tsv"), monkeypatch, capsys
    )
    writer.join()
    assert (rc, "BCF must be a file: to use a pipe, write VCF to it" in last) == (2, True), last


@pytest.mark.gpu
def test_a_gpu_writes_the_same_tables(run_program, index, cohort, tmp_path):
    *_, guide_file, variants = cohort
    tables = set()
    for backend in ("cpu", "cuda"):
        for limits in ((6, 1, 1), (2, 2, 2)):
            m, dna, rna = limits
            done = run_program(
                SCRIPT, "--index", index, "--guides", guide_file, "-o", tmp_path / "o.tsv",
                "--mismatches", m, "--dna-bulges", dna, "--rna-bulges", rna, "--variants", variants,
                "--backend", backend, "--samples",
            )  # fmt: skip
            assert done.rc == 0, done.stderr
            tables.add((limits, (tmp_path / "o.tsv").read_bytes()))
    assert len(tables) == 2
