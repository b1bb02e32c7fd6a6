"""bwarp offtargets --genomes: its tables against every genome searched alone, and its errors."""

import csv
import gzip

import numpy as np
import pytest

from bwarp.index.store import load_index, save_index
from bwarp.offtargets import genome_sites, genome_tables
from bwarp.offtargets.alternative_sites import Sought
from bwarp.offtargets.find import find_sites
from bwarp.offtargets.genome_files import read_genomes
from bwarp.offtargets.guides import parse_pam, read_guides
from bwarp.offtargets.hits import SiteOptions
from tests.helpers.cases.random_genomes import chain_text, paf_text, random_genome
from tests.helpers.oracles.genomes_oracle import merged_sites
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.offtargets_oracle import opposite, pam_at
from tests.helpers.oracles.seed_hits_oracle import random_bases
from tests.helpers.programs.refusal import refusal
from tests.offtargets.test_find import guides_from, text_of
from tests.offtargets.test_variant_tables import rows_of, write_guides

SCRIPT = "find_offtargets.py"
GUIDE = "GAGTCCGAGCAGAAGAAGAA"
CONTIGS = [random_bases(260, 8), b"GGA" * 25 + random_bases(90, 9), random_bases(120, 3)]
REFERENCE = text_of(CONTIGS)


def fasta(contigs):
    return "".join(f">{name} more words\n{text}\n" for name, text in contigs.items())


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """Return a folder with an index, guides, genomes and alignments, and the genomes."""
    folder = tmp_path_factory.mktemp("family")
    save_index(index_of(CONTIGS, with_reverse=False), folder / "i")
    guides = guides_from(CONTIGS, 2, 18, 20, 6)
    write_guides(folder / "g.fa", guides)
    genomes = {}
    for number, name in enumerate(("ann", "bob", "eve")):
        contigs, pieces = random_genome(REFERENCE, np.random.default_rng(number), name)
        genomes[name] = contigs, pieces
        (folder / f"{name}.paf").write_text(paf_text(pieces, contigs, REFERENCE))
        (folder / f"{name}.chain").write_text(chain_text(pieces, contigs, REFERENCE))
        if name == "eve":
            save_index(
                index_of([text.encode() for text in contigs.values()], with_reverse=False),
                folder / "eve.index",
            )
            renamed = {f"contig{i}": text for i, text in enumerate(contigs.values())}
            moved = [
                one._replace(genome=f"contig{list(contigs).index(one.genome)}") for one in pieces
            ]
            genomes[name] = renamed, moved
            (folder / f"{name}.paf").write_text(paf_text(moved, renamed, REFERENCE))
            (folder / f"{name}.chain").write_text(chain_text(moved, renamed, REFERENCE))
        elif name == "bob":
            (folder / "bob.fasta.gz").write_bytes(gzip.compress(fasta(contigs).encode()))
        else:
            (folder / "ann.fa").write_text(fasta(contigs))
    return folder, guides, genomes


def arguments_of(folder, output, limits, *more):
    m, dna, rna = limits
    return (
        "--index", folder / "i", "--guides", folder / "g.fa", "-o", output, "--mismatches", m,
        "--dna-bulges", dna, "--rna-bulges", rna, *more,
    )  # fmt: skip


def with_genomes(folder, kind=None):
    paths = ("--genomes", folder / "ann.fa", folder / "bob.fasta.gz", folder / "eve.index")
    if kind:
        paths += ("--alignments", *(folder / f"{name}.{kind}" for name in ("ann", "bob", "eve")))
    return paths


def check(rows, wanted, n_genomes, side, pams):
    assert len(rows) == len(wanted)
    found = {
        (
            row["guide"], row["guide_aligned"], row["site_aligned"], row["pam"], row["contig"],
            int(row["start"]), int(row["end"]), row["strand"], row["coordinates"],
        ): row
        for row in rows
    }  # fmt: skip
    assert len(found) == len(rows)
    names = ["ann", "bob", "eve"]
    for one in wanted:
        place = (one["contig"], one["start"], one["end"], one["strand"])
        row = found[*one["bases"], *place, one["coordinates"]]
        assert row["origin"] == one["origin"]
        assert row["genomes"] == str(len(one["genomes"]))
        listed = ",".join(name for name in names if name in one["genomes"])
        assert row["genome_names"] == ("all" if len(one["genomes"]) == n_genomes else listed)
        assert row["frequency"] == f"{len(one['genomes']) / n_genomes:.6f}"
        if one["origin"] == "reference":
            assert (row["aligned"], row["lost"]) == (str(one["aligned"]), str(one["lost"]))
            assert row["effect"] == ("loss" if one["lost"] else "")
        elif one["coordinates"] == "reference":
            border = one["end"] if (one["strand"] == "+") == (side == 3) else one["start"]
            text = REFERENCE[one["contig"]]
            if one["strand"] == "-":
                text, border = opposite(text), len(text) - border
            has_pam = pam_at(text, border, pams, side) is not None
            assert row["pam_change"] == ("" if has_pam else "made")
            if one["before"] is None or one["before"] > one["edits"]:
                assert row["effect"] == "gain"
            elif one["before"] < one["edits"]:
                assert row["effect"] == "loss"
            else:
                assert row["effect"] in ("gain", "loss", "equal")
        else:
            assert (row["effect"], row["pam_change"], row["lost"]) == ("", "", "")


@pytest.mark.parametrize("kind", [None, "paf", "chain"])
@pytest.mark.parametrize(
    ("pam", "side", "limits"),
    [
        ("NGG", 3, (6, 1, 1)), ("TTN", 5, (5, 0, 2)), ("NNGRRT,NG", 3, (4, 1, 0)),
        ("none", 3, (2, 1, 1)),
    ],
)  # fmt: skip
def test_rows_are_those_of_every_genome(run_program, family, tmp_path, kind, pam, side, limits):
    folder, guides, genomes = family
    more = ("--pam", pam, "--pam-side", side)
    run = (*arguments_of(folder, tmp_path / "o.tsv", limits, *more), *with_genomes(folder, kind))
    done = run_program(SCRIPT, *run)
    assert done.rc == 0, done.stderr
    plain = arguments_of(folder, tmp_path / "plain.tsv", limits, *more)
    assert run_program(SCRIPT, *plain).rc == 0
    lines = (tmp_path / "o.tsv").read_text().splitlines()
    kept = ["\t".join(line.split("\t")[:15]) for line in lines if "\talternative\t" not in line]
    assert kept == (tmp_path / "plain.tsv").read_text().splitlines()
    assert (tmp_path / "o.guides.tsv").read_bytes() == (tmp_path / "plain.guides.tsv").read_bytes()
    if kind is None:
        genomes = {name: (contigs, None) for name, (contigs, _) in genomes.items()}
    pams = [""] if pam == "none" else pam.split(",")
    wanted = merged_sites(REFERENCE, genomes, guides, pams, side, limits)
    rows = rows_of(tmp_path / "o.tsv")
    check(rows, wanted, 3, side, pams)
    kinds = {(row["origin"], row["coordinates"] == "reference", row["effect"]) for row in rows}
    assert len(kinds) >= (6 if kind and pam == "NGG" else 2)


def test_many_sites_go_to_files(run_program, family, tmp_path, monkeypatch):
    folder, *_ = family
    run = (*arguments_of(folder, tmp_path / "o.tsv", (6, 1, 1)), *with_genomes(folder, "paf"))
    assert run_program(SCRIPT, *run).rc == 0
    for name, most in (("SITES_IN_MEMORY", 40), ("_MERGED_AT_ONCE", 30), ("_ROWS_AT_ONCE", 7)):
        monkeypatch.setattr(genome_tables, name, most)
    guides, pam = read_guides(folder / "g.fa"), parse_pam("NGG")
    for threads in (1, 3):
        reference = load_index(folder / "i").reference
        sought = Sought(reference, guides, pam, SiteOptions(6, 1, 1), threads)

        def hits_of(reference, sought=sought):
            return (hits for _, hits in find_sites(reference, *sought[1:5]))

        names = ("ann", "bob", "eve")
        with genome_tables.open_genome_tables(tmp_path / "f.tsv", sought, names) as tables:
            for hits in hits_of(sought.reference):
                tables.add(hits)
            tables.finish_reference()
            files = with_genomes(folder)[1:], [folder / f"{name}.paf" for name in names]
            for genome in read_genomes(*files, sought.reference, threads):
                tables.add_genome(genome, hits_of(genome.bases))
            assert len(list(tmp_path.glob(".f.tsv.hits*/*.sites"))) == 1
        assert (tmp_path / "f.tsv").read_bytes() == (tmp_path / "o.tsv").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_rows_whose_hashes_are_equal():
    factor = 0x9E3779B97F4A7C15
    mixed = [(1 * factor) % 2**64, (2 * factor) % 2**64]
    mixed = [value ^ value >> 32 for value in mixed]
    first = np.array([1, 2, 1, 2, 2])
    # The second column takes the difference back.
    second = np.array([mixed[value - 1] for value in first], np.uint64)
    order, new = genome_sites._equal_rows([first, second])
    assert sorted(np.split(order, np.flatnonzero(new)[1:]), key=len)[0].tolist() == [0, 2]
    assert sorted(np.split(order, np.flatnonzero(new)[1:]), key=len)[1].tolist() == [1, 3, 4]


def test_more_alignments_of_a_site(run_program, family, tmp_path):
    folder, *_ = family
    tables = []
    for more in ((), ("--all-alignments",)):
        run = (*arguments_of(folder, tmp_path / "o.tsv", (4, 1, 1)), *with_genomes(folder, "chain"))
        assert run_program(SCRIPT, *run, *more).rc == 0
        tables.append(rows_of(tmp_path / "o.tsv"))
    best = [row for row in tables[1] if row.pop("alignment") == "1"]
    assert best == tables[0]
    assert len(tables[1]) > len(best)


def test_the_reference_itself_and_features(run_program, family, tmp_path):
    """A genome that equals the reference has all its sites, and no others."""
    folder, *_ = family
    (tmp_path / "same.fa").write_text(fasta(REFERENCE))
    (tmp_path / "same.bed").write_text("contig0\t0\t200\tgene\n")
    run = arguments_of(folder, tmp_path / "o.tsv", (6, 1, 1), "--annotation", tmp_path / "same.bed")
    done = run_program(SCRIPT, *run, "--genomes", tmp_path / "same.fa", folder / "i")
    assert done.rc == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "2 genomes searched: 0 alternative sites"
    rows = rows_of(tmp_path / "o.tsv")
    assert len(rows) > 10
    assert {(row["genome_names"], row["lost"], row["origin"]) for row in rows} == {
        ("all", "0", "reference")
    }
    done = run_program(SCRIPT, *run, *with_genomes(folder, "paf"))
    assert done.rc == 0, done.stderr
    noted = {(row["origin"], row["annotation"]) for row in rows_of(tmp_path / "o.tsv")}
    assert {("alternative", "gene"), ("alternative", ""), ("reference", "gene")} <= noted


def test_more_than_64_genomes(run_program, family, tmp_path):
    folder, *_ = family
    paths = [tmp_path / f"{number}.fa" for number in range(70)]
    for path in paths[:-1]:
        path.write_text(fasta(REFERENCE))
    paths[-1].write_text(">x\nACGT\n")
    run = (*arguments_of(folder, "-", (6, 1, 1)), "--format", "tsv", "--genomes", *paths)
    done = run_program(SCRIPT, *run)
    assert done.rc == 0, done.stderr
    rows = list(csv.DictReader(done.stdout.splitlines(), delimiter="\t"))
    assert len(rows) > 10
    names = ",".join(map(str, range(69)))
    assert {(row["genomes"], row["genome_names"], row["lost"]) for row in rows} == {
        ("69", names, "1")
    }


def test_a_site_whose_pam_a_genome_makes(run_program, tmp_path):
    text = f"TTACA{GUIDE}TGATTACCAGTACGATTACA"
    save_index(index_of([text.encode()], with_reverse=False), tmp_path / "i")
    write_guides(tmp_path / "g.fa", {"g": GUIDE})
    at = text.index("TGATTACC") + 2
    made = "CC" + text[:at] + "G" + text[at + 1 :]
    (tmp_path / "p.fa").write_text(f">chr1\n{opposite(made)}\n")
    n = len(text)
    (tmp_path / "p.paf").write_text(
        f"chr1\t{n + 2}\t0\t{n}\t-\tcontig0\t{n}\t0\t{n}\t{n - 1}\t{n}\t60\tcg:Z:{n}M\n"
    )
    run = arguments_of(tmp_path, tmp_path / "o.tsv", (1, 0, 0), "--genomes", tmp_path / "p.fa")
    assert run_program(SCRIPT, *run, "--alignments", tmp_path / "p.paf").rc == 0
    (row,) = rows_of(tmp_path / "o.tsv")
    wanted = {
        "contig": "contig0", "start": "5", "end": "25", "strand": "+", "cut": "22",
        "cfd": "1.000000", "origin": "alternative", "coordinates": "reference", "genomes": "1",
        "genome_names": "all",
        "frequency": "1.000000", "pam_change": "made", "effect": "gain", "lost": "",
    }  # fmt: skip
    assert {name: row[name] for name in wanted} == wanted
    change = float(row["cfd"]) - float(row["reference_cfd"])
    assert float(row["cfd_change"]) == pytest.approx(change, abs=2e-6)
    assert run_program(SCRIPT, *run).rc == 0
    (row,) = rows_of(tmp_path / "o.tsv")
    assert (row["contig"], row["strand"], row["coordinates"]) == ("chr1", "-", "p")
    assert (row["effect"], row["reference_cfd"]) == ("", "")


def test_a_gap_anywhere_in_a_repeat(run_program, tmp_path):
    """The site of the reference stays the same, whether its border or its other end moves."""
    before, after = "ATTACAGATTACAT", "GGGGTACCATTACAG"
    guide = "ACTCCGAGCAGAAGAACAAG"
    text = before + guide + after
    save_index(index_of([text.encode()], with_reverse=False), tmp_path / "i")
    write_guides(tmp_path / "g.fa", {"g": guide})
    border = len(before) + 20
    longer = text[:border] + "G" + text[border:]
    (tmp_path / "p.fa").write_text(f">chr1\n{longer}\n")
    n = len(text)
    for first in range(border - 1, border + 5):
        (tmp_path / "p.paf").write_text(
            f"chr1\t{n + 1}\t0\t{n + 1}\t+\tcontig0\t{n}\t0\t{n}\t{n}\t{n}\t60\t"
            f"cg:Z:{first}M1I{n - first}M\n"
        )
        run = arguments_of(tmp_path, tmp_path / "o.tsv", (0, 0, 0), "--genomes", tmp_path / "p.fa")
        assert run_program(SCRIPT, *run, "--alignments", tmp_path / "p.paf").rc == 0
        (row,) = rows_of(tmp_path / "o.tsv")
        assert (row["origin"], row["genomes"], row["lost"]) == ("reference", "1", "0")


@pytest.fixture
def refused(checkout, monkeypatch, capsys, family, tmp_path):
    """Return a function that runs the program: exit code and last line."""
    folder, *_ = family

    def run(*more, output="o.tsv"):
        arguments = arguments_of(folder, tmp_path / output, (3, 0, 0), *more)
        return refusal(checkout / "scripts" / SCRIPT, arguments, monkeypatch, capsys)

    return run


def test_wrong_use(refused, family, tmp_path):
    folder, *_ = family
    genomes = with_genomes(folder)
    (tmp_path / "a,b.fa").write_text(">x\nACGT\n")
    (tmp_path / "all.fa").write_text(">x\nACGT\n")
    for more, output, said in (
        (genomes, "o.bed", "--genomes requires the columns of bwarp"),
        ((*genomes, "--variants", folder / "g.fa"), "o.tsv", "--genomes cannot be combined with"),
        (("--alignments", folder / "ann.paf"), "o.tsv", "--alignments requires --genomes"),
        (
            (*genomes, "--alignments", folder / "ann.paf"),
            "o.tsv",
            "of 1 genome, but 3 genomes: give a file",
        ),
        (("--genomes", tmp_path / ".fa"), "o.tsv", "the genome would be named '': rename"),
        ((*genomes, folder / "ann.fa"), "o.tsv", "the genome would be named 'ann': rename"),
        (("--genomes", tmp_path / "a,b.fa"), "o.tsv", "the genome would be named 'a,b': rename"),
        (("--genomes", tmp_path / "all.fa"), "o.tsv", "the genome would be named 'all': rename"),
    ):
        rc, last = refused(*more, output=output)
        assert (rc, said in last) == (2, True), last


def test_files_that_are_missing_or_no_genomes(refused, family, tmp_path):
    folder, *_ = family
    (tmp_path / "p.fa").write_text(">x\nMEFL\n")
    for path, said in (
        (tmp_path / "nothing.fa", "nothing.fa"),
        (tmp_path / "p.fa", "is a protein letter"),
        (tmp_path, "not a bwarp index"),
    ):
        rc, last = refused("--genomes", folder / "ann.fa", path)
        assert (rc != 0, said in last) == (True, True), last


PAF = "ann0\t{n}\t0\t9\t+\tcontig0\t260\t0\t8\t8\t9\t60"


def test_broken_alignments(refused, family, tmp_path):
    folder, _, genomes = family
    n = len(genomes["ann"][0]["ann0"])
    paf = PAF.format(n=n)
    head = f"chain 5 ann0 {n} + 0 9 contig0 260 + 0 8 1"
    path = tmp_path / "a"
    for text, said in {
        "": "no alignments: give PAF or a chain file",
        "# nothing\n": "no alignments",
        ">x\nACGT\n": "line 1: neither PAF nor a chain",
        f"{paf}\n".replace("\t+\t", "\t?\t"): "line 1: neither PAF nor a chain",
        f"{paf}\tcg:Z:8M1I\n\nx\ty\n": "line 3: neither PAF nor a chain",
        f"{paf}\n": "line 1: there is no CIGAR (tag cg): use minimap2 -c",
        f"{paf}\tcg:Z:8M1H\n": "letters other than M, I, D, N, = and X",
        f"{paf}\tcg:Z:8M2I\n": "the CIGAR has 10 bases of ann0, but the other columns say 9",
        f"{paf}\tcg:Z:9M\n": "the CIGAR has 9 bases of contig0, but the other columns say 8",
        f"{PAF.format(n=n + 1)}\tcg:Z:8M1I\n": f"ann0 of the genome has {n + 1} bases here, but",
        f"{paf}\tcg:Z:8M1I\n".replace("\t260", "\t26"): "contig0 of the reference has 26 bases",
        f"{paf}\tcg:Z:8M1I\n".replace("\t0\t9", "\t9\t0"): "9 to 0 is not a part of ann0",
        f"{paf}\tcg:Z:8M1I\n".replace("ann0", "ann9"): "the genome has no ann9",
        f"{paf}\tcg:Z:8M1I\n".replace("contig0", "x"): "the reference has no x",
        f"{head}\n": "line 1: the chain has no last block: the file is truncated",
        f"{head}\n8 1 0\n{head}\n": "line 3: the chain before has no last block",
        f"{head}\n8 1\n": "line 2: not a line of a chain",
        f"{head}\n8 1 0\n0\n8\n": "line 4: not a line of a chain",
        f"{head}\n8 -1 0\n0\n": "line 2: not a line of a chain",
        f"{head}\n8 2 0\n0\n": "line 1: the chain has 10 bases of ann0",
        f"{head}\n8 1 1\n0\n": "line 1: the chain has 9 bases of contig0",
        f"{head}\n8 1 0\n0\n".replace("260 +", "260 *"): "line 1: not the header of a chain",
        f"{head}\n8 1 0\n0\n".replace(f"{n} +", f"{n} -"): "line 1: not the header of a chain",
    }.items():  # fmt: skip
        path.write_text(text)
        rc, last = refused("--genomes", folder / "ann.fa", "--alignments", path)
        assert (rc, said in last) == (1, True), (text, last)


def test_unknown_contigs_are_counted(run_program, family, tmp_path):
    folder, *_ = family
    known = (folder / "ann.paf").read_text()
    path = tmp_path / "a.paf"
    path.write_text(known + known.replace("ann0", "x") + known.replace("tp:A:P", "tp:A:S"))
    tables = []
    for alignments in (folder / "ann.paf", path):
        run = arguments_of(folder, tmp_path / "o.tsv", (3, 0, 0), "--genomes", folder / "ann.fa")
        done = run_program(SCRIPT, *run, "--alignments", alignments)
        assert done.rc == 0, done.stderr
        tables.append((tmp_path / "o.tsv").read_bytes())
    skipped = known.count("ann0")
    assert f"a.paf: {skipped} alignments not used, because the genome or the" in done.stderr
    assert tables[0] == tables[1]


@pytest.mark.gpu
def test_a_gpu_writes_the_same_tables(run_program, family, tmp_path):
    folder, *_ = family
    tables = set()
    for backend in ("cpu", "cuda"):
        run = arguments_of(folder, tmp_path / "o.tsv", (6, 1, 1), "--backend", backend)
        assert run_program(SCRIPT, *run, *with_genomes(folder, "paf")).rc == 0
        tables.add((tmp_path / "o.tsv").read_bytes())
    assert len(tables) == 1
