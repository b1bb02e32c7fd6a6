"""Products of primer pairs, against comparing every primer with every window."""

import gzip

import numpy as np
import pytest

from bwarp.index.store import save_index
from bwarp.primers import products as products_module
from bwarp.primers.pairs import pairs_of
from bwarp.primers.products import ProductOptions, find_products
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.offtargets_oracle import IUPAC, opposite
from tests.helpers.oracles.seed_hits_oracle import GENOMES, mutated, random_bases
from tests.helpers.programs.programs_here import run_here

LEFT, RIGHT = random_bases(20, 51), random_bases(18, 52)
#: Sites of primers: plain, in both orientations, with mismatches at either end, on two contigs.
CONTIGS = [
    b"TT" + LEFT + random_bases(60, 53) + opposite(RIGHT.decode()).encode() + random_bases(30, 54)
    + mutated(LEFT, np.array([1]), 3) + b"NNNN" + opposite(RIGHT.decode()).encode(),
    RIGHT + random_bases(200, 55) + opposite(LEFT.decode()).encode() + b"ACGT"
    + mutated(LEFT, np.array([19]), 4) + random_bases(25, 56) + opposite(LEFT.decode()).encode(),
    LEFT + random_bases(12, 57),
    opposite(RIGHT.decode()).encode() + b"TTGACA" * 5,
]  # fmt: skip
PAIRS = {
    "exact": (LEFT.decode(), RIGHT.decode()),
    "degenerate": ("N" + LEFT[1:-1].decode() + "N", RIGHT[:9].decode() + "RYN"),
    "repeats": ("ACACACAC", "TGTGTGTG"),
    "overlap": (LEFT.decode(), opposite(LEFT[3:].decode())),
    "nowhere": ("CCCCCCCCCCCC", "GGGGTTTTCCCC"),
}
LIMITS = [
    ProductOptions(0, 15, 1, 4000),
    ProductOptions(2, 15, 1, 4000),
    ProductOptions(2, 5, 90, 260, True),
    ProductOptions(1, 0, 1, 150, True),
    ProductOptions(3, 64, 1, 4000),
]


def bind(primer, text, options):
    """Return (start, mismatches) of each site of a primer in a text."""
    found = []
    for at in range(len(text) - len(primer) + 1):
        site = text[at : at + len(primer)]
        if set(site) - set("ACGT"):
            continue
        differ = [b not in IUPAC[a] for a, b in zip(primer, site, strict=True)]
        last = differ[len(differ) - options.last :] if options.last < len(differ) else differ
        if sum(differ) <= options.mismatches and not (options.last and any(last)):
            found.append((at, sum(differ)))
    return found


def expected(contigs, pairs, options):
    """Return rows (pair, contig, start, end, left, right, mismatches), and sites of primers."""
    rows, sites = [], {}
    names = ("forward", "reverse")
    for pair, primers in pairs.items():
        sites[pair] = [0, 0]
        for number, contig in enumerate(contigs):
            text = "".join(base if base in "ACGT" else "N" for base in contig.decode())
            plus = [bind(primer, text, options) for primer in primers]
            minus = [
                [(len(text) - at, n) for at, n in bind(primer, opposite(text), options)]
                for primer in primers
            ]
            for i in range(2):
                sites[pair][i] += len(plus[i]) + len(minus[i])
            for left in range(2):
                for right in range(2):
                    if left == right and not options.with_itself:
                        continue
                    longest = max(len(primers[left]), len(primers[right]))
                    rows += [
                        (pair, number, start, end, names[left], names[right], n, m)
                        for start, n in plus[left]
                        for end, m in minus[right]
                        if max(longest, options.min_product) <= end - start <= options.max_product
                    ]
    order = list(pairs)
    return sorted(rows, key=lambda row: (order.index(row[0]), *row[1:])), sites


@pytest.mark.parametrize("options", LIMITS)
@pytest.mark.parametrize("contigs", [CONTIGS, GENOMES["repeats"], GENOMES["many contigs"]])
def test_every_product(monkeypatch, contigs, options):
    index = index_of(contigs)
    reference = index.reference
    text = [letter for pair in PAIRS.values() for letter in pair]
    pairs = pairs_of(list(PAIRS), text, "pairs")
    wanted, sites = expected(contigs, PAIRS, options)
    for at_once, threads in ((512, 1), (2, 3)):
        monkeypatch.setattr(products_module, "PAIRS_AT_ONCE", at_once)
        rows, counts = [], []
        for found, n_sites in find_products(index, reference, pairs, options, "cpu", threads):
            contig = reference.contig_of(found.starts)
            begin = reference.contig_starts[contig]
            rows += [
                (pairs.names[pair], on, start, end, ("forward", "reverse")[left],
                 ("forward", "reverse")[right], n, m)
                for pair, on, start, end, left, right, n, m in zip(
                    found.pairs.tolist(), contig.tolist(), (found.starts - begin).tolist(),
                    (found.ends - begin).tolist(), found.left.tolist(), found.right.tolist(),
                    found.left_mismatches.tolist(), found.right_mismatches.tolist(), strict=True,
                )
            ]  # fmt: skip
            counts += n_sites.tolist()
        assert rows == wanted
        assert counts == [n for pair in PAIRS for n in sites[pair]]
    assert wanted or contigs is not CONTIGS


@pytest.fixture
def here(tmp_path):
    save_index(index_of(CONTIGS), tmp_path / "g.index")
    (tmp_path / "p.tsv").write_text(
        "# mine\nname\tforward\treverse\n"
        + "".join(f"{name}\t{a.lower()}, {b}\n" for name, (a, b) in PAIRS.items())
    )
    return tmp_path


def test_tables_of_all_formats(here):
    options = ProductOptions(2, 15, 1, 4000, True)
    wanted, sites = expected(CONTIGS, PAIRS, options)
    run = ("--index", here / "g.index", "--pairs", here / "p.tsv", "--with-itself")

    def rows(output):
        done = run_here("find_products", *run, "-o", here / output, folder=here)
        assert done.rc == 0, done.said
        assert done.last_line == (
            f"5 pairs of primers: {len(wanted)} products of "
            f"{len({row[0] for row in wanted})} pairs, "
            f"{5 - len({row[0] for row in wanted})} without a product"
        )
        data = (here / output).read_bytes()
        return (gzip.decompress(data) if output.endswith("gz") else data).decode().splitlines()

    strands = ["-" if row[4] > row[5] else "+" for row in wanted]
    assert set(strands) == {"+", "-"}
    table = rows("o.tsv")
    assert table[0] == (
        "pair\tcontig\tstart\tend\tlength\tstrand\tleft\tright\tleft_mismatches\tright_mismatches"
    )
    assert [line.split("\t") for line in table[1:]] == [
        [pair, f"contig{contig}", str(start), str(end), str(end - start), strand, *map(str, rest)]
        for (pair, contig, start, end, *rest), strand in zip(wanted, strands, strict=True)
    ]
    counted = [line.split("\t") for line in (here / "o.pairs.tsv").read_text().splitlines()]
    assert counted[0] == [
        "pair", "forward", "reverse", "forward_sites", "reverse_sites", "products",
    ]  # fmt: skip
    assert counted[1:] == [
        [name, a, b, *map(str, sites[name]), str(sum(row[0] == name for row in wanted))]
        for name, (a, b) in PAIRS.items()
    ]
    assert [line.split("\t") for line in rows("o.bed.gz")] == [
        [f"contig{row[1]}", str(row[2]), str(row[3]), row[0], str(row[6] + row[7]), strand]
        for row, strand in zip(wanted, strands, strict=True)
    ]
    fasta = rows("o.fa")
    for row, strand, head, bases in zip(wanted, strands, fasta[::2], fasta[1::2], strict=True):
        pair, contig, start, end, left, right, *_ = row
        product = CONTIGS[contig][start:end].decode()
        assert bases == (product if strand == "+" else opposite(product))
        assert head == (
            f">{pair}:contig{contig}:{start}-{end}:{strand} {end - start} bases, {left} and "
            f"{right} primer"
        )
    done = run_here("find_products", *run, "-o", "-", folder=here)
    assert done.rc == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "p.tsv: no primer pairs: write a name and two primers per line"),
        ("a ACGTACGT\n",
         "p.tsv, line 1: found 2 columns: write a name, a forward and a reverse primer"),
        ("a ACGTACGT ACGTACG\n",
         "p.tsv, pair a, reverse primer has 7 bases: primers must have 8 to 64"),
        ("a ACGTACGE ACGTACGT\n", "p.tsv, pair a, forward primer: 'E' at position 8 is not a "
         "nucleotide letter (IUPAC)"),
        ("a NNNNNNNN ACGTACGT\n",
         "p.tsv, pair a, forward primer represents more than 4096 sequences: use fewer "
         "ambiguous letters"),
        ("a ACGTACGT ACGTACGT\na ACGTACGT ACGTACGT\n",
         "p.tsv: two pairs are named a: rename one"),
    ],
)  # fmt: skip
def test_pairs_that_are_refused(here, text, message):
    (here / "p.tsv").write_text(text)
    run = ("--index", here / "g.index", "--pairs", here / "p.tsv", "-o", here / "o.tsv")
    done = run_here("find_products", *run, folder=here)
    assert (done.rc, done.last_line) == (1, f"find_products.py: error: {here}/{message}")
    assert not list(here.glob("o.*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "o.txt"),
         "o.txt: the output must end in .tsv, .bed or .fa, or one with .gz"),
        (("-o", "o.tsv", "--min-product", 9, "--max-product", 8), "--min-product 9 is greater "
         "than --max-product 8"),
    ],
)  # fmt: skip
def test_options_that_are_refused(here, monkeypatch, words, message):
    monkeypatch.chdir(here)
    run = ("--index", here / "g.index", "--pairs", here / "p.tsv", *words)
    done = run_here("find_products", *run, folder=here)
    assert (done.rc, done.last_line) == (2, f"find_products.py: error: {message}")
    assert not list(here.glob("o.*"))
