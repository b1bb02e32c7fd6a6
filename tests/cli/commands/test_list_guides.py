"""bwarp guides: all protospacers next to a PAM, against a check of every position."""

import itertools
import re

import numpy as np
import pytest

from bwarp.index.store import save_index
from bwarp.offtargets import guide_list
from bwarp.offtargets.guide_list import GuideFilter, list_guides
from bwarp.offtargets.guides import parse_pam
from tests.helpers.oracles.index_oracle import index_of, reference_of
from tests.helpers.oracles.offtargets_oracle import opposite
from tests.helpers.oracles.seed_hits_oracle import GENOMES
from tests.helpers.programs.refusal import refusal

SCRIPT = "list_guides.py"
CONTIGS = {
    "contig0": "NNACGTTGCAAGCTTAGCATGTTTTACGGCCAGTCCANNACCTGGATCGGATCCGGTACCATTTTGGAAACCCGGG",
    "contig1": "AGG",
    "contig2": "TTTACCCGATTACAGGATCCATGGTTTTTCGGACCGGTTAACC",
}
LETTERS = {"N": "ACGT", "R": "AG", "Y": "CT", "V": "ACG"}


def fits(pam, text):
    return all(base in LETTERS.get(letter, letter) for letter, base in zip(pam, text, strict=True))


def expected(contigs, regions, pams, side, length):
    """Return (name, sequence, first matching PAM) by contig, start and strand."""
    found = {}
    for contig, start, stop in regions:
        text = list(contigs.values())[contig][start:stop]
        for pam, strand in itertools.product(pams, "+-"):
            here = text if strand == "+" else opposite(text)
            width = length + len(pam)
            for at in range(len(here) - width + 1):
                site = here[at : at + width]
                if set(site) - set("ACGT"):
                    continue
                cut = length if side == 3 else len(pam)
                guide, beside = (site[:cut], site[cut:]) if side == 3 else (site[cut:], site[:cut])
                if fits(pam, beside):
                    begin = at if side == 3 else at + len(pam)
                    if strand == "-":
                        begin = len(here) - begin - length
                    found.setdefault((contig, start + begin, strand), (guide, beside))
    names = list(contigs)
    return [
        (f"{names[contig]}:{start}-{start + length}:{strand}", guide, pam)
        for (contig, start, strand), (guide, pam) in sorted(found.items())
    ]


def of_fasta(text):
    return [
        (*re.match(r">(\S+) ?(\S*)$", head).groups(), line)
        for head, line in zip(text.splitlines()[::2], text.splitlines()[1::2], strict=True)
    ]


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "g.fa"
    path.write_text("".join(f">{name} x\n{text}\n" for name, text in CONTIGS.items()))
    return path


@pytest.fixture
def index(tmp_path):
    save_index(index_of([text.encode() for text in CONTIGS.values()]), tmp_path / "g.index")
    return tmp_path / "g.index"


@pytest.mark.parametrize(
    ("pam", "side", "length"),
    [
        ("NGG", 3, 20), ("TTN,CCN", 5, 15), ("none", 3, 18), ("VN", 5, 16),
        ("NNGRR,NG,TGG", 3, 18), ("N,TTN", 5, 16),
    ],
)  # fmt: skip
def test_all_guides_of_a_file(run_program, fasta, index, pam, side, length):
    whole = [(i, 0, len(text)) for i, text in enumerate(CONTIGS.values())]
    wanted = expected(CONTIGS, whole, [""] if pam == "none" else pam.split(","), side, length)
    assert len(wanted) > 4
    options = ("--pam", pam, "--pam-side", side, "--length", length, "-o", "-")
    for source in (("--fasta", fasta), ("--index", index)):
        done = run_program(SCRIPT, *source, *options)
        assert done.rc == 0, done.stderr
        assert [(a, c, b) for a, b, c in of_fasta(done.stdout)] == wanted
        assert f"{len(wanted)} guides of {length} bases listed" in done.stderr


def test_regions_and_filters(run_program, index, tmp_path):
    (tmp_path / "r.bed").write_text("# mine\ncontig0\t35\t70\tx\ncontig0\t45\t76\n")
    regions = [(2, 9, 43), (0, 35, 70), (0, 45, 76)]
    wanted = expected(CONTIGS, regions, ["NGG"], 3, 15)
    run = ("--index", index, "--region", "contig2:1,0-43", "--bed", tmp_path / "r.bed")
    output = tmp_path / "out.txt"
    assert run_program(SCRIPT, *run, "--length", 15, "-o", output).rc == 0
    rows = [tuple(line.split("\t")) for line in output.read_text().splitlines()]
    assert rows == [row[:2] for row in wanted]
    assert len(rows) > 5
    more = ("--min-gc", 40, "--max-gc", 60, "--without-tttt")
    assert run_program(SCRIPT, *run, "--length", 15, "-o", output, *more).rc == 0
    kept = [tuple(line.split("\t")) for line in output.read_text().splitlines()]
    assert kept == [
        row for row in rows
        if 40 <= 100 * sum(map(row[1].count, "CG")) / 15 <= 60 and "TTTT" not in row[1]
    ]  # fmt: skip
    assert 0 < len(kept) < len(rows)


@pytest.mark.parametrize(("pam", "side"), [("NGG", 3), ("TTN,CN", 5)])
def test_guides_that_overlap_excluded_regions_are_left_out(run_program, fasta, tmp_path, pam, side):
    regions = [("contig0", 20, 23), ("contig0", 44, 45), ("contig0", 40, 41), ("contig2", 39, 43)]
    bed = tmp_path / "x.bed"
    bed.write_text("".join("{}\t{}\t{}\n".format(*region) for region in regions))
    run = ("--fasta", fasta, "--pam", pam, "--pam-side", side, "--length", 15, "-o", "-")
    listed = of_fasta(run_program(SCRIPT, *run).stdout)
    kept = []
    for name, beside, sequence in listed:
        contig, span, strand = name.split(":")
        start, end = map(int, span.split("-"))
        if (strand == "+") == (side == 3):
            end += len(beside)
        else:
            start -= len(beside)
        if not any(contig == other and start < stop and end > first
                   for other, first, stop in regions):  # fmt: skip
            kept.append((name, beside, sequence))
    done = run_program(SCRIPT, *run, "--exclude", bed)
    assert of_fasta(done.stdout) == kept
    assert 0 < len(kept) < len(listed)
    assert done.stderr.splitlines()[-1] == (
        f"{len(kept)} guides of 15 bases listed; {len(listed) - len(kept)} left out (--exclude)"
    )


def test_listed_guides_can_be_searched(run_program, index, tmp_path):
    for name in ("guides.fa", "guides.txt.gz"):
        assert run_program(SCRIPT, "--index", index, "-o", tmp_path / name).rc == 0
        run = ("--index", index, "--guides", tmp_path / name, "-o", "-", "--mismatches", 0)
        done = run_program("find_offtargets.py", *run)
        rows = [line.split("\t") for line in done.stdout.splitlines()[1:]]
        sites = {f"{row[4]}:{row[5]}-{row[6]}:{row[7]}" for row in rows}
        assert {row[0] for row in rows} <= sites
        assert rows


def test_blocks_of_any_size_list_the_same(monkeypatch):
    reference, pam = reference_of(GENOMES["repeats"]), parse_pam("NGG")
    regions = [(0, 100), (30, reference.contig_starts[1]), (50, 60)]
    lists = []
    for stretch in (1 << 22, 64, 7):
        monkeypatch.setattr(guide_list, "STRETCH", stretch)
        lists.append(list(list_guides(reference, regions, pam, 20, GuideFilter())))
    for other in lists[1:]:
        for one, two in zip(lists[0], other, strict=True):
            for column, same in zip(vars(one).values(), vars(two).values(), strict=True):
                np.testing.assert_array_equal(column, same)
    assert sum(guides.count for guides in lists[0]) > 5


def test_nothing_fits(run_program, fasta, tmp_path):
    done = run_program(SCRIPT, "--fasta", fasta, "-o", tmp_path / "o.fa", "--pam", "GATTACAGATTACA")
    assert (done.rc, (tmp_path / "o.fa").read_text()) == (0, "")
    assert done.stderr.splitlines()[-2:] == [
        "warning: no guide was found", "0 guides of 20 bases listed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ((), 2, "use either --fasta or --index"),
        (("--fasta", "FA", "--min-gc", "60", "--max-gc", "50"), 2,
         "--min-gc 60 is greater than --max-gc 50"),
        (("--fasta", "FA", "--region", "chr1"), 2, "--region chr1: no contig chr1 in the "
         "reference: write contig or contig:from-to, such as contig0"),
        (("--fasta", "FA", "--region", "contig1:2-4"), 2, "--region contig1:2-4: contig1 has the "
         "bases 1 to 3: write two of them, the smaller first"),
        (("--fasta", "FA", "--bed", "BED"), 1, "line 1: not BED: write contig, start and end, "
         "separated by tabs"),
        (("--fasta", "FA", "--bed", "BED2"), 1, "line 1: no contig c in the reference: "
         "its first contig is contig0"),
        (("--fasta", "FA", "--bed", "BED3"), 1, "line 1: contig1 has 3 bases: the start must be "
         "less than the end, and the end at most"),
        (("--fasta", "FA", "--bed", "BED4"), 1, "no regions: write contig, start and end, "
         "separated by tabs"),
    ],
)  # fmt: skip
def test_refusals(checkout, monkeypatch, capsys, fasta, tmp_path, words, code, message):
    files = {"BED": "contig1 1 2\n", "BED2": "c\t1\t2\n", "BED3": "contig1\t1\t9\n", "BED4": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    paths = {name: str(tmp_path / name) for name in files} | {"FA": str(fasta)}
    arguments = [paths.get(word, word) for word in words]
    script = checkout / "scripts" / SCRIPT
    refused = refusal(script, (*arguments, "-o", tmp_path / "o.fa"), monkeypatch, capsys)
    assert (refused[0], message in refused[1]) == (code, True), refused
    assert not (tmp_path / "o.fa").exists()
