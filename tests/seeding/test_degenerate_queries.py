"""Degenerate queries and PAMs, against comparing every letter with every base."""

import csv
from itertools import pairwise

import numpy as np
import pytest
from Bio.Data.IUPACData import ambiguous_dna_values

from bwarp.index.store import save_index
from bwarp.io.fastx import SequenceBatch
from bwarp.seeding import queries as degenerate_queries
from bwarp.seeding.find import count_sites, find_sites, kmer_batches
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.queries import CODE_OF_LETTER, batches_with_variants
from bwarp.sequence import CODE_OF_BYTE
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.offtargets_oracle import opposite
from tests.helpers.oracles.seed_hits_oracle import GENOMES
from tests.helpers.programs.programs_here import run_here

MEANT = {letter: set(bases) for letter, bases in ambiguous_dna_values.items() if letter != "X"}
QUERIES = {
    "plain": "GTTGTTTACGCC",
    "two": "ACRCACAYACAC",
    "all": "NNNNNNACAC",
    "long": "GTTGTTTACGCCGTGAGTRGCTACTCATTTTCGTGTGACGB",
    "other": "ACACACAC",
    "wide": "NNNNNNNACAC",
    "short": "ACN",
    "last": "VTTTACGW",
}


def batch(queries, code_of_byte=CODE_OF_LETTER):
    text = "".join(queries.values()).encode()
    ends = np.cumsum([0, *map(len, queries.values())])
    names = "".join(queries).encode()
    edges = np.cumsum([0, *map(len, queries)])
    return SequenceBatch(
        codes=code_of_byte[np.frombuffer(text, np.uint8)],
        offsets=ends.astype(np.int64),
        qualities=None,
        text=np.frombuffer(names, np.uint8),
        headers=np.array(list(pairwise(edges)), np.int64),
        first_record=0,
    )


def fits(pattern, text):
    return len(pattern) == len(text) and all(
        base in MEANT[letter] for letter, base in zip(pattern, text, strict=True)
    )


def by_comparing(contigs, query, mismatches, pams=(), side=3):
    """Return (strand, contig, position, mismatches, site) of the hits of a query."""
    found = []
    for strand in "+-":
        for number, contig in enumerate(contigs):
            text = "".join(base if base in "ACGT" else "N" for base in contig.decode())
            here = text if strand == "+" else opposite(text)
            rows = []
            for at in range(len(here) - len(query) + 1):
                end = at + len(query)
                site = here[at:end]
                if set(site) - set("ACGT"):
                    continue
                differ = sum(b not in MEANT[a] for a, b in zip(query, site, strict=True))
                beside = [
                    here[end : end + len(pam)] if side == 3 else here[max(at - len(pam), 0) : at]
                    for pam in pams
                ]
                is_site = not pams or any(map(fits, pams, beside))
                if differ <= mismatches and is_site:
                    position = at if strand == "+" else len(here) - end
                    rows.append((strand, number, position, differ, site))
            found += sorted(rows, key=lambda row: row[2])
    return found


def test_codes_of_letters():
    for letter, meant in MEANT.items():
        code = CODE_OF_LETTER[ord(letter)]
        assert CODE_OF_LETTER[ord(letter.lower())] == code
        assert {"ACGT"[base] for base in degenerate_queries._BASES[code]} == meant
    plain = CODE_OF_BYTE < 4
    np.testing.assert_array_equal(CODE_OF_LETTER[plain], CODE_OF_BYTE[plain])
    np.testing.assert_array_equal(CODE_OF_LETTER == 255, CODE_OF_BYTE == 255)
    assert CODE_OF_LETTER[ord("N")] == 4


@pytest.mark.parametrize("at_once", [1 << 18, 5])
def test_batches_hold_every_query_once_and_in_order(monkeypatch, at_once):
    monkeypatch.setattr(degenerate_queries, "VARIANTS_AT_ONCE", at_once)
    parts = list(batches_with_variants(batch(QUERIES)))
    numbers = np.concatenate([part.queries for part in parts])
    skipped = np.concatenate([part.skipped for part in parts])
    assert numbers.tolist() == [0, 1, 2, 3, 4, 7]
    assert skipped.tolist() == [[5, 0, 4], [6, 0, 2]]
    variants = [part.variants.count for part in parts if part.variants is not None]
    assert sum(variants) == 4 + 4096 + 2 * 3 + 3 * 2
    assert len(variants) == (2 if at_once > 5 else 3)
    # Without degenerate queries nothing changes.
    plain = {"a": "ACGTACGTAC", "b": "ACG", "c": "A" * 65}
    for k in (None, 8):
        (one,), (two,) = batches_with_variants(batch(plain), k), kmer_batches(batch(plain), k)
        for name in ("words", "lengths", "queries", "starts", "skipped"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert [part.count for part in batches_with_variants(batch({}))] == [0]


@pytest.mark.parametrize("mismatches", [0, 1, 2])
def test_every_site_once_with_its_fewest_mismatches(mismatches):
    contigs = GENOMES["repeats"]
    index = index_of(contigs)
    for max_hits in (0, 7):
        options = SeedOptions(mismatches, max_hits)
        for kmers in batches_with_variants(batch(QUERIES)):
            found, over = [], {}
            for one in find_sites(index, kmers, options, "cpu", 2):
                over |= dict(zip(one.over_kmers.tolist(), one.over_counts.tolist(), strict=True))
                for hits in one.hits:
                    found += zip(
                        hits.kmers.tolist(), hits.strands.tolist(), hits.positions.tolist(),
                        hits.mismatches.tolist(), strict=True,
                    )  # fmt: skip
            counts = count_sites(index, kmers, options, "cpu")
            for row, query in enumerate(kmers.queries.tolist()):
                wanted = by_comparing(contigs, list(QUERIES.values())[query], mismatches)
                assert counts[row] == len(wanted)
                if max_hits and len(wanted) > max_hits:
                    assert over.pop(row) == len(wanted)
                    wanted = []
                starts = index.reference.contig_starts
                assert [hit[1:] for hit in found if hit[0] == row] == [
                    ("+-".index(strand), int(starts[contig]) + at, differ)
                    for strand, contig, at, differ, _ in wanted
                ]
            assert not over


@pytest.fixture
def here(tmp_path):
    save_index(index_of(GENOMES["repeats"]), tmp_path / "g.index")
    (tmp_path / "q.fa").write_text("".join(f">{a}\n{b}\n" for a, b in QUERIES.items()))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "pams", "side"),
    [
        ((), (), 3),
        (("--pam", "NG,CA"), ("NG", "CA"), 3),
        (("--pam", "TN", "--pam-side", 5), ("TN",), 5),
        (("--pam", "GNG,CA"), ("GNG", "CA"), 3),
        (("--pam", "T,NNCA", "--pam-side", 5), ("T", "NNCA"), 5),
    ],
)
def test_the_program(here, words, pams, side):
    run = ("--index", here / "g.index", "--queries", here / "q.fa", "-o", here / "o.tsv")
    options = ("--mismatches", 1, "--max-hits", 40, *words)
    done = run_here("find_seeds", *run, *options, "--site-sequence", folder=here)
    assert done.rc == 0, done.said
    with (here / "o.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    with (here / "o.over.tsv").open() as file:
        over = {row["query"]: row["hits"] for row in csv.DictReader(file, delimiter="\t")}
    reasons = (here / "o.skipped.tsv").read_text().splitlines()[1:]
    assert reasons == [
        "wide\t0\tstands for more than 4096 sequences",
        "short\t0\tshorter than the k-mer length",
    ]
    n_hits = 0
    for name, query in QUERIES.items():
        if name in ("wide", "short"):
            continue
        wanted = by_comparing(GENOMES["repeats"], query, 1, pams, side)
        if len(wanted) > 40:
            assert over.pop(name) == str(len(wanted))
            wanted = []
        assert [
            (row["strand"], row["contig"], row["position"], row["mismatches"], row["site"])
            for row in rows if row["query"] == name
        ] == [
            (strand, f"contig{contig}", str(at), str(differ), site)
            for strand, contig, at, differ, site in wanted
        ]  # fmt: skip
        n_hits += len(wanted)
    assert (over, len(rows)) == ({}, n_hits)
    assert n_hits > 5
    counted = run_here("find_seeds", *run, *options, "--count-only", folder=here)
    assert counted.rc == 0, counted.said
    counts = dict(line.split("\t0\t") for line in (here / "o.tsv").read_text().splitlines()[1:])
    wanted = by_comparing(GENOMES["repeats"], QUERIES["two"], 1, pams, side)
    assert counts["two"] == str(len(wanted))


def test_refusals(here):
    run = ("--index", here / "g.index", "--queries", here / "q.fa", "-o")
    for output, more in ((here / "o.bed", ()), (here / "o.tsv", ("--count-only",))):
        done = run_here("find_seeds", *run, output, "--site-sequence", *more, folder=here)
        assert (done.rc, done.last_line) == (
            2, "find_seeds.py: error: --site-sequence requires a table of hits, .tsv or .tsv.gz",
        )  # fmt: skip
        assert not output.exists()
