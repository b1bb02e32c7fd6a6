"""bwarp guides --specificity: its tables against those of bwarp offtargets, and all pairs."""

import csv
import gzip
import itertools
import math

import numpy as np
import pytest

from bwarp.index.store import save_index
from tests.helpers.cases.random_variants import HEADER, phased, random_lines, vcf_text
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.programs.refusal import refusal
from tests.offtargets.test_find import text_of

SCRIPT, SEARCH = "list_guides.py", "find_offtargets.py"
LIMITS = ("--mismatches", 5, "--dna-bulges", 1, "--rna-bulges", 1)
REGION = ("--region", "contig1", "--length", 20)


def copies(n, seed):
    """Return mutated copies of a sequence: guides of one have off-targets in the others."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 4, 120)
    found = []
    for _ in range(n):
        changed = np.where(rng.random(120) < 0.06, rng.integers(0, 4, 120), first)
        found.append(bytes(b"ACGT"[i] for i in changed))
    return found


CONTIGS = [b"".join(copies(4, 3)), copies(5, 3)[-1] + copies(1, 8)[0]]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "small.index"
    save_index(index_of(CONTIGS, with_reverse=False), folder)
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return files of phased variants, the same without genotypes, and of features."""
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(6)
    lines = random_lines(text_of(CONTIGS), rng, 40)
    text = vcf_text(lines, phased(lines, 4, rng))
    (folder / "phased.vcf").write_text(text)
    body = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    alone = ["\t".join([*cells[:7], f"AF={0.01 * (i + 1):.2f}"]) for i, cells in enumerate(body)]
    (folder / "alone.vcf").write_text("\n".join([HEADER, *alone]) + "\n")
    (folder / "genes.bed").write_text("contig0\t30\t190\tone\ncontig0\t0\t40\ttwo\n")
    return folder


def rows_of(path):
    with open(path) as file:
        return list(csv.DictReader(file, delimiter="\t"))


def border_of(row, side):
    follows = (row["strand"] == "+") == (side == 3)
    return row["contig"], row["strand"], row["end" if follows else "start"]


def edits_of(row):
    return sum(int(row[name]) for name in ("mismatches", "dna_bulge", "rna_bulge"))


def score(row, name):
    return float(row[name] or 0)


def expected(rows, counted, target, side):
    """Return the row of a guide, from its rows in the table of sites and its counts."""
    mine = [row for row in rows if row["guide"] == counted["guide"]]
    others = [row for row in mine if border_of(row, side) != target]
    known = [row for row in others if row.get("origin") != "alternative"]
    found = {name: cell for name, cell in counted.items() if name != "complete"}
    found["annotated_sites"] = str(sum(row["annotation"] != "" for row in known))
    if "origin" not in rows[0]:
        return found
    (own,) = [
        row for row in mine if border_of(row, side) == target and row["origin"] == "reference"
    ]
    for name in ("variants", "frequency", "pam_change", "effect", "lost"):
        found[f"target_{name}"] = own[name]
    for name, whole in (("cfd", 1), ("mit", 100)):
        worst = {}
        for row in others:
            worst[border_of(row, side)] = max(worst.get(border_of(row, side), 0), score(row, name))
        perfect = [score(row, name) for row in [own, *known] if edits_of(row) == 0]
        total = sum(worst.values()) + score(own, name) - max(perfect)
        has_scores = counted[f"{name}_specificity"] != ""
        found[f"worst_{name}_specificity"] = whole * whole / (whole + total) if has_scores else ""
    gains = [row for row in others if row["effect"] == "gain"]
    found["gains"] = str(len(gains))
    worst = min(gains, key=lambda row: (-score(row, "cfd"), edits_of(row)), default=None)
    names = {"cfd": "cfd", "mit": "mit", "variants": "variants", "frequency": "frequency"}
    for name, cell in {**names, "site": "site_aligned"}.items():
        found[f"worst_{name}"] = worst[cell] if worst else ""
    found["worst_position"] = "{contig}:{start}-{end}:{strand}".format(**worst) if worst else ""
    return found


@pytest.mark.parametrize(
    ("variants", "pam", "side"),
    [
        ("", "NGG", 3), ("phased.vcf", "NGG", 3), ("alone.vcf", "NGG", 3),
        ("phased.vcf", "NAG,NGG", 3), ("phased.vcf", "TTN,TC", 5),
    ],
)  # fmt: skip
def test_the_table_agrees_with_that_of_all_sites(
    run_program, index, files, tmp_path, variants, pam, side
):
    pams = ("--pam", pam, "--pam-side", side)
    more = (*LIMITS, "--annotation", files / "genes.bed")
    more += ("--variants", files / variants) if variants else ()
    run = ("--index", index, *REGION, *pams)
    tables = set()
    for threads in (1, 3):
        output = tmp_path / "design.tsv"
        done = run_program(SCRIPT, *run, "-o", output, "--specificity", "--threads", threads, *more)
        assert done.rc == 0, done.stderr
        tables.add(output.read_bytes())
    assert len(tables) == 1
    assert run_program(SCRIPT, *run, "-o", tmp_path / "guides.fa").rc == 0
    search = ("--index", index, "--guides", tmp_path / "guides.fa", "-o", tmp_path / "sites.tsv")
    assert run_program(SEARCH, *search, *more, *pams).rc == 0
    if variants:
        unsearched = [tmp_path / f"{name}.unsearched.tsv" for name in ("design", "sites")]
        assert unsearched[0].read_bytes() == unsearched[1].read_bytes()
    sites = rows_of(tmp_path / "sites.tsv")
    counts = {row["guide"]: row for row in rows_of(tmp_path / "sites.guides.tsv")}
    rows = rows_of(output)
    assert sorted(row["guide"] for row in rows) == sorted(counts)
    assert len(rows) > 10
    for row in rows:
        name = f"{row['contig']}:{row['start']}-{row['end']}:{row['strand']}"
        assert row["guide"] == name
        bases = row["sequence"]
        assert row["gc"] == str(round(100 * sum(map(bases.count, "CG")) / 20))
        assert row["tttt"] == ("yes" if "TTTT" in bases else "no")
        for column, cell in expected(sites, counts[name], border_of(row, side), side).items():
            if isinstance(cell, float):
                assert float(row[column]) == pytest.approx(cell, abs=2e-5 * max(1, cell)), column
            else:
                assert row[column] == cell, column
    if variants:
        assert sum(row["worst_variants"] != "" for row in rows) > 3
        changed = sum(row["worst_cfd_specificity"] < row["cfd_specificity"] for row in rows)
        assert changed > 2 if side == 3 else changed == 0
        assert sum(row["target_variants"] != "" for row in rows) > 3
        assert any(row["target_effect"] == "loss" for row in rows)
    assert any(0 < int(row["annotated_sites"]) < int(row["sites"]) - 1 for row in rows)
    by = "worst_cfd_specificity" if variants else "cfd_specificity"
    classes = [name for name in rows[0] if name[0] == "n" and name[1].isdigit()]

    def place(row):
        counted = [int(row[name]) for name in classes]
        return -float(row[by] or 0), *counted, row["contig"], int(row["start"]), row["strand"]

    assert rows == sorted(rows, key=place)


def test_guides_without_scores_are_ranked_by_counts(run_program, index, tmp_path):
    run = ("--index", index, "--region", "contig1", "--length", 18, "--mismatches", 4)
    done = run_program(SCRIPT, *run, "--specificity", "-o", "-")
    assert done.rc == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))
    assert {row["cfd_specificity"] for row in rows} == {""}
    counts = [[int(row[f"n{m}"]) for m in range(5)] for row in rows]
    assert counts == sorted(counts)
    assert counts[0] != counts[-1]


def test_pairs_of_nickases(run_program, index, files, tmp_path):
    run = ("--index", index, "--specificity", "-o", tmp_path / "d.tsv.gz", "--nickases")
    more = ("--min-offset", -12, "--max-offset", 30, "--variants", files / "phased.vcf")
    done = run_program(SCRIPT, *run, *more)
    assert done.rc == 0, done.stderr
    pairs = rows_of(tmp_path / "d.nickases.tsv")
    with gzip.open(tmp_path / "d.tsv.gz", "rt") as file:
        guides = list(csv.DictReader(file, delimiter="\t"))
    wanted = {}
    for left, right in itertools.product(guides, guides):
        offset = int(right["start"]) - int(left["end"])
        outward = left["contig"] == right["contig"] and left["strand"] + right["strand"] == "-+"
        if outward and -12 <= offset <= 30:
            wanted[left["guide"], right["guide"]] = left, right, offset
    assert {(pair["left"], pair["right"]) for pair in pairs} == set(wanted)
    assert len(pairs) == len(wanted) > 10
    for pair in pairs:
        left, right, offset = wanted[pair["left"], pair["right"]]
        assert pair["offset"] == str(offset)
        assert (pair["contig"], pair["start"], pair["end"]) == (
            left["contig"], left["start"], right["end"],
        )  # fmt: skip
        for name, whole in (("cfd_specificity", 1), ("mit_specificity", 100)):
            for column in (name, f"worst_{name}"):
                scores = [whole * whole / float(one[column]) - whole for one in (left, right)]
                both = whole * whole / (whole + sum(scores))
                assert math.isclose(float(pair[column]), both, rel_tol=1e-4), column
    best = [float(pair["worst_cfd_specificity"]) for pair in pairs]
    assert best == sorted(best, reverse=True)
    assert f"{len(pairs)} pairs of guides listed" in done.stderr


def test_no_guides(run_program, index, tmp_path):
    run = ("--index", index, "--pam", "GATTACAGATTACA", "-o", tmp_path / "o.tsv")
    done = run_program(SCRIPT, *run, "--specificity", "--nickases")
    assert done.rc == 0, done.stderr
    assert (tmp_path / "o.tsv").read_text().startswith("guide\tsequence\tpam\tcontig\tstart\t")
    assert len((tmp_path / "o.nickases.tsv").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "o.tsv", "--mismatches", 4), "--mismatches requires --specificity"),
        (("-o", "o.tsv", "--variants", "v.vcf"), "--variants requires --specificity"),
        (("-o", "o.fa", "--specificity"), "o.fa: --specificity writes a table: the output must "
         "end in .tsv or .tsv.gz"),
        (("-o", "-", "--specificity", "--nickases"), "--nickases writes a second file: use -o "
         "OUT.tsv instead of -o -"),
        (("-o", "o.tsv", "--specificity", "--nickases", "--pam-side", 5), "--nickases requires a "
         "PAM at the 3' end: use --pam-side 3"),
        (("-o", "o.tsv", "--specificity", "--min-offset", 9, "--max-offset", -2),
         "--min-offset 9 is greater than --max-offset -2"),
    ],
)  # fmt: skip
def test_refusals(checkout, monkeypatch, capsys, index, words, message):
    script = checkout / "scripts" / SCRIPT
    refused = refusal(script, ("--index", index, *words), monkeypatch, capsys)
    assert refused[0] == 2
    assert refused[1].endswith(f"{message}\n")


def test_a_design_requires_an_index(checkout, monkeypatch, capsys, tmp_path):
    (tmp_path / "g.fa").write_text(">a\nACGT\n")
    words = ("--fasta", tmp_path / "g.fa", "-o", tmp_path / "o.tsv", "--specificity")
    code, line = refusal(checkout / "scripts" / SCRIPT, words, monkeypatch, capsys)
    assert code == 2
    assert line.endswith("--specificity requires --index: run bwarp index on the genome first\n")
