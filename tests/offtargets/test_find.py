"""Every site of guides, against trying every alignment at every position."""

import numpy as np
import pytest

from bwarp.offtargets import guide_counts
from bwarp.offtargets.alignments import NO_BULGES
from bwarp.offtargets.find import find_sites, search_one_site
from bwarp.offtargets.guide_counts import HitsByGuide
from bwarp.offtargets.guides import guides_of, parse_pam
from bwarp.offtargets.hits import SiteOptions, joined_hits
from bwarp.offtargets.site_rows import describe
from tests.helpers.oracles.index_oracle import reference_of
from tests.helpers.oracles.offtargets_oracle import opposite, sites
from tests.helpers.oracles.seed_hits_oracle import GENOMES, mutated

#: Contigs, many of them too short; the others have a site at each end.
EDGES = [bytes(length * b"GG" + b"ACGTTGCAAGCTTAGCATG" + length * b"CC") for length in range(4)] + [
    b"TTTACGTTGCAAGCTTAGCA",
    b"ACGTTGCAAGCTTAGCATGGNGGTTAGCATGCAAGCTTGCAACGT",
]
ALL_GENOMES = GENOMES | {"edges": EDGES, "one base": [b"A" * 150, b"T" * 40, b"NNNAAAANNN"]}
LIMITS = [(m, d, r) for m in (0, 1, 3) for d in range(3) for r in range(3) if m + d + r <= 4] + [
    (6, 0, 0),
    (5, 1, 0),
]


def text_of(contigs):
    letters = [contig.decode() for contig in contigs]
    return {
        f"contig{i}": "".join(base if base in "ACGT" else "N" for base in contig)
        for i, contig in enumerate(letters)
    }


def guides_from(contigs, seed, shortest=15, longest=19, n=3):
    """Return pieces of a genome with some mismatches, from both strands."""
    rng = np.random.default_rng(seed)
    text = "".join(text_of(contigs).values())
    found = {}
    while len(found) < n:
        length = int(rng.integers(shortest, longest + 1))
        at = int(rng.integers(0, max(len(text) - length, 1)))
        piece = text[at : at + length].replace("N", "C")
        if len(piece) < length:
            piece = "ACGTTGCAAGCTTAGCATGTACGATCGATTAGCATTCGAT"[:length]
        piece = mutated(piece.encode(), rng.integers(0, length, rng.integers(0, 3)), at).decode()
        found[f"guide{len(found)}"] = opposite(piece) if rng.integers(2) else piece
    return found


def search(contigs, guides, pam, side, options, threads=1, stretch=1 << 18, backend="cpu"):
    """Return rows in the form of the oracle."""
    reference = reference_of(contigs)
    guides, pam = guides_of(list(guides), list(guides.values())), parse_pam(pam, side)
    parts = [
        hits for _, hits in find_sites(reference, guides, pam, options, threads, backend, stretch)
    ]
    hits = joined_hits(parts)
    assert (np.diff(hits.starts) >= 0).all()
    order = np.lexsort((hits.ranks, hits.strands, hits.lengths, hits.starts, hits.guides))
    rows = describe(type(hits)(*(c[order] for c in vars(hits).values())), guides, pam, reference)
    return [
        (
            guides.names[rows.hits.guides[i]],
            rows.guide_text[i, : rows.widths[i]].tobytes().decode(),
            rows.site_text[i, : rows.widths[i]].tobytes().decode(),
            rows.pams[i, : rows.pam_lengths[i]].tobytes().decode(),
            reference.names[rows.contigs[i]],
            int(rows.starts[i]),
            int(rows.ends[i]),
            "+-"[rows.hits.strands[i]],
            int(rows.hits.mismatches[i]),
            int(rows.hits.dna_bulges[i]),
            int(rows.hits.rna_bulges[i]),
        )
        for i in range(hits.count)
    ]


@pytest.mark.parametrize("genome", ALL_GENOMES)
def test_best_alignments_of_every_site(genome):
    contigs = ALL_GENOMES[genome]
    n_rows = 0
    for number, limits in enumerate(LIMITS):
        guides = guides_from(contigs, number)
        pam, side = [("NGG", 3), ("TTN", 5), ("none", 3), ("none", 5), ("RG,NC", 5), ("NNT", 3)][
            number % 6
        ]
        wanted = sites(
            text_of(contigs), guides, [""] if pam == "none" else pam.split(","), side, *limits
        )
        for threads, stretch in ((1, 1 << 18), (2, 64), (3, 192)):
            found = search(contigs, guides, pam, side, SiteOptions(*limits), threads, stretch)
            assert found == wanted, (limits, pam, side)
        n_rows += len(wanted)
    assert n_rows > 20


@pytest.mark.parametrize("genome", ALL_GENOMES)
@pytest.mark.parametrize(
    ("pam", "side"),
    [("NGG,NNGRRT", 3), ("NNGRRT,NG,NGG", 3), ("TTTV,TN", 5), ("N,TTTV,NNNNN", 5), ("NNNNN,N", 3)],
)
def test_pams_of_several_lengths(genome, pam, side):
    """A site is listed once, with the first PAM that matches completely."""
    contigs = ALL_GENOMES[genome]
    for number, limits in enumerate([(3, 0, 0), (1, 1, 1)]):
        guides = guides_from(contigs, number, n=2)
        wanted = sites(text_of(contigs), guides, pam.split(","), side, *limits)
        for threads, stretch in ((1, 1 << 18), (2, 64), (3, 192)):
            options = SiteOptions(*limits)
            assert search(contigs, guides, pam, side, options, threads, stretch) == wanted
        wanted = sites(text_of(contigs), guides, pam.split(","), side, *limits, every=True)
        options = SiteOptions(*limits, all_alignments=True)
        assert search(contigs, guides, pam, side, options, 2, 128) == wanted


@pytest.mark.parametrize("genome", ["random", "repeats", "edges"])
def test_all_alignments_of_every_site(genome):
    contigs = ALL_GENOMES[genome]
    for number, limits in enumerate([(0, 1, 1), (2, 1, 0), (1, 0, 2), (1, 1, 1), (0, 2, 2)]):
        guides = guides_from(contigs, number, n=2)
        for pam, side in (("NGG", 3), ("none", 5)):
            wanted = sites(
                text_of(contigs),
                guides,
                [""] if pam == "none" else [pam],
                side,
                *limits,
                every=True,
            )
            options = SiteOptions(*limits, all_alignments=True)
            assert search(contigs, guides, pam, side, options, 2, 128) == wanted
            best = {
                (row[0], row[3], *row[4:8]) for row in sites(
                    text_of(contigs), guides, [""] if pam == "none" else [pam], side, *limits
                )
            }  # fmt: skip
            assert best <= {(row[0], row[3], *row[4:8]) for row in wanted}


def test_guides_of_all_lengths_at_once():
    contigs = ALL_GENOMES["random"]
    guides = {}
    for length in (15, 20, 23, 31, 32, 33, 39, 40):
        (guides[f"g{length}"],) = guides_from(contigs, length, length, length, 1).values()
    for pam, side in (("none", 3), ("VN", 5)):
        wanted = sites(text_of(contigs), guides, [pam] if pam != "none" else [""], side, 3, 1, 1)
        assert search(contigs, guides, pam, side, SiteOptions(3, 1, 1)) == wanted
        assert {row[0] for row in wanted} == set(guides)


def test_more_sites_than_a_batch_and_more_rows_than_room():
    """Poly-A: every position is a site, and every batch is full."""
    contigs = [b"A" * 3000]
    guides = {"a": "A" * 15, "t": "T" * 16}
    found = search(contigs, guides, "none", 3, SiteOptions(0, 1, 1), 2, 1024)
    # And at the end of each contig a site with one base less: an RNA bulge.
    assert len(found) == (3000 - 14) + 1 + (3000 - 15) + 1
    assert len(set(found)) == len(found)


def test_hits_come_by_guide_from_memory_and_from_files(monkeypatch, tmp_path):
    contigs = GENOMES["repeats"]
    guides = guides_from(contigs, 5, n=4)
    reference = reference_of(contigs)
    guides, pam = guides_of(list(guides), list(guides.values())), parse_pam("none")
    options = SiteOptions(5, 1, 1)
    parts = [hits for _, hits in find_sites(reference, guides, pam, options, 1, "cpu", 64)]
    whole = joined_hits(parts)
    order = np.argsort(whole.guides, kind="stable")
    assert whole.count > 300
    monkeypatch.setattr(guide_counts, "HITS_A_RUN", 50)
    for in_memory in (1, 100, 1 << 20):
        by_guide = HitsByGuide(guides.count, tmp_path, in_memory, threads=3)
        for hits in parts:
            by_guide.add(hits)
        found = joined_hits(sum(by_guide, []))
        for name, column in vars(found).items():
            np.testing.assert_array_equal(column, getattr(whole, name)[order])
    assert any(tmp_path.iterdir())


def test_counts_are_of_sites_and_not_of_alignments():
    contigs = ALL_GENOMES["one base"]
    guides, pam = guides_of(["a"], ["A" * 15]), parse_pam("none")
    reference = reference_of(contigs)
    tables = []
    for every in (False, True):
        options = SiteOptions(1, 1, 1, every)
        counts = guide_counts.GuideCounts(guides, pam, options)
        for _, hits in find_sites(reference, guides, pam, options):
            counts.add(counts.of(describe(hits, guides, pam, reference)))
        tables.append(counts.table())
    assert tables[0] == tables[1]
    head, line = (row.split("\t") for row in tables[0].splitlines())
    row = dict(zip(head, line, strict=True))
    perfect = (150 - 14) + (40 - 14)
    # With 14 bases there is a site with one base less: an RNA bulge.
    assert (row["n0"], row["n0_rna"], row["n0_dna"]) == (str(perfect), "2", "0")
    assert (row["sites"], row["cfd_specificity"], row["complete"]) == (str(perfect + 2), "", "yes")


def test_gaps_that_are_not_bulges():
    assert NO_BULGES == 0xFFFFFFFF
    # A gap next to the PAM, or at the far end, would give these sites.
    guide, genome = "ACGTTGCAAGCTTAGC", "TTTT" + "ACGTTGCAAGCTTAGC" + "T" + "TGG" + "TTTT"
    assert search([genome.encode()], {"g": guide}, "NGG", 3, SiteOptions(0, 1, 0)) == []
    genome = "CGTTGCAAGCTTAGCTGG"
    assert search([genome.encode()], {"g": guide}, "NGG", 3, SiteOptions(0, 0, 1)) == []


@pytest.mark.parametrize("pam", ["NGG", "none", "TTTV", "NGG,NG", "RYN,VVVV"])
@pytest.mark.parametrize("side", [3, 5])
@pytest.mark.parametrize("limits", [(0, 0, 0), (4, 1, 1)])
def test_one_site_is_found_with_every_length_of_pam(pam, side, limits):
    guides = guides_of(["a", "b"], ["ACGTTGCAAGCTTAGCAGGC", "CCCCCCCCCCCCCCCCC"])
    pam = parse_pam(pam, side)
    n_hits = search_one_site(guides, pam, SiteOptions(*limits), "cpu")
    assert n_hits >= len(pam.by_length())
