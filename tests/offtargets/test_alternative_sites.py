"""Alternative sites, against searching every haplotype written out."""

import numpy as np
import pytest

from bwarp.offtargets import alternative_sites as module
from bwarp.offtargets.alternative_sites import Sought, find_alternative_sites
from bwarp.offtargets.guides import guides_of, parse_pam
from bwarp.offtargets.hits import SiteOptions
from bwarp.variants import files
from bwarp.variants.files import VariantFile
from tests.helpers.cases.random_variants import (
    edits_of,
    haplotypes_of,
    phased,
    random_lines,
    vcf_text,
)
from tests.helpers.oracles.index_oracle import reference_of
from tests.helpers.oracles.seed_hits_oracle import random_bases
from tests.helpers.oracles.variants_oracle import (
    alternative_sites,
    applied,
    combinations,
    written_out,
)
from tests.offtargets.test_find import guides_from, text_of

CONTIGS = {
    "random": [random_bases(150, 1), random_bases(70, 2)],
    "repeats": [b"ACGG" * 8 + b"A" * 30 + b"CAG" * 12 + b"GGG" * 5, b"CCT" * 20],
    "ambiguous": [random_bases(60, 3) + b"N" + random_bases(50, 4) + b"NN" + random_bases(9, 5)],
}
PAMS = [("none", 3), ("TN", 5), ("R,NGC", 3), ("none", 5), ("NNT", 3), ("NR", 5)]
LIMITS = [(0, 0, 0), (2, 0, 0), (3, 1, 0), (2, 1, 1), (1, 2, 2), (4, 0, 1), (6, 0, 0)]


def guides_of_haplotypes(contigs, haplotypes, seed):
    """Return pieces of haplotypes with many edits, and of the reference, with mismatches."""
    texts = [
        written_out(text_of(contigs)[contig], applied(max(lists, key=len)))[0].encode()
        for contig, lists in haplotypes.items()
    ]
    return guides_from(texts, seed, 15, 18, 8) | {
        f"{name}b": guide for name, guide in guides_from(contigs, seed, 15, 16, 1).items()
    }


def found_in(path, contigs, guides, pam, side, options, at_once=1, **how):
    """Return alternative sites in the form of the oracle."""
    reference = reference_of(contigs)
    given = guides_of(list(guides), list(guides.values()))
    sought = Sought(reference, given, parse_pam(pam, side), options, **how)
    file = VariantFile(path, reference, sought.threads)
    found = {}
    for stretch in file.stretches(sought.reach, at_once):
        contig = reference.names.index(stretch.contig)
        begin = int(reference.contig_starts[contig])
        found_sites = find_alternative_sites(stretch, sought)
        assert found_sites.limited.size == 0
        rows, origins = found_sites.rows, found_sites.origins
        for i in np.flatnonzero(~origins.same):
            edits = found_sites.edits[slice(*origins.edits[i])]
            names = []
            for edit in edits:
                cells = stretch.texts[stretch.edits.records[edit]].decode().split("\t")
                alt = cells[4].split(",")[stretch.edits.alleles[edit] - 1]
                names.append(f"{cells[0]}:{cells[1]}:{cells[3]}:{alt}:{cells[2]}")
            key = (
                given.names[rows.hits.guides[i]],
                rows.guide_text[i, : rows.widths[i]].tobytes().decode(),
                rows.site_text[i, : rows.widths[i]].tobytes().decode(),
                rows.pams[i, : rows.pam_lengths[i]].tobytes().decode(),
                stretch.contig,
                int(origins.starts[i]) - begin,
                int(origins.ends[i]) - begin,
                "+-"[rows.hits.strands[i]],
                int(rows.hits.mismatches[i]),
                int(rows.hits.dna_bulges[i]),
                int(rows.hits.rna_bulges[i]),
                tuple(names),
            )
            assert key not in found
            assert stretch.begin <= origins.borders[i] < stretch.end
            found[key] = int(np.bitwise_count(origins.carriers[i]).sum())
    return found


def wanted_in(contigs, guides, pam, side, limits, haplotypes, every=False):
    pams = [""] if pam == "none" else pam.split(",")
    sites = alternative_sites(contigs, guides, pams, side, limits, haplotypes, every)
    return {
        (*key[:-1], tuple(f"{edit[5]}:rs{edit[3]}" for edit in key[-1])): len(numbers)
        for key, numbers in sites.items()
    }


@pytest.mark.parametrize("genome", CONTIGS)
def test_sites_of_phased_haplotypes(genome, tmp_path):
    contigs = CONTIGS[genome]
    total = 0
    for number, limits in enumerate(LIMITS):
        rng = np.random.default_rng(number)
        pam, side = PAMS[number % len(PAMS)]
        lines = random_lines(text_of(contigs), rng, 14)
        genotypes = phased(lines, 3, rng, haploid="contig0")
        haplotypes = haplotypes_of(lines, genotypes)
        guides = guides_of_haplotypes(contigs, haplotypes, number)
        path = tmp_path / f"{number}.vcf"
        path.write_text(vcf_text(lines, genotypes))
        every = number % 3 == 2
        wanted = wanted_in(text_of(contigs), guides, pam, side, limits, haplotypes, every)
        options = SiteOptions(*limits, all_alignments=every)
        for at_once, threads in ((1, 1), (1000, 2)):
            found = found_in(path, contigs, guides, pam, side, options, at_once, threads=threads)
            assert found == wanted
        total += len(wanted)
    assert total > 60, total


@pytest.mark.parametrize("genome", CONTIGS)
def test_all_combinations_without_phase(genome, tmp_path):
    contigs = CONTIGS[genome]
    total = 0
    for number, limits in enumerate(LIMITS):
        rng = np.random.default_rng(number + 50)
        pam, side = PAMS[number % len(PAMS)]
        lines = random_lines(text_of(contigs), rng, 5)
        path = tmp_path / f"{number}.vcf"
        path.write_text(vcf_text(lines))
        haplotypes = {contig: combinations(edits) for contig, edits in edits_of(lines).items()}
        guides = guides_of_haplotypes(contigs, haplotypes, number)
        wanted = wanted_in(text_of(contigs), guides, pam, side, limits, haplotypes)
        found = found_in(path, contigs, guides, pam, side, SiteOptions(*limits))
        assert set(found) == set(wanted)
        total += len(wanted)
    assert total > 20, total


@pytest.mark.parametrize("is_phased", [True, False])
def test_where_a_contig_is_cut_makes_no_difference(tmp_path, monkeypatch, is_phased):
    contigs = [random_bases(3_000, 11)]
    rng = np.random.default_rng(12)
    lines = random_lines(text_of(contigs), rng, 200 if is_phased else 100)
    genotypes = phased(lines, 3, rng) if is_phased else None
    path = tmp_path / "v.vcf"
    path.write_text(vcf_text(lines, genotypes))
    guides = guides_from(contigs, 3, 15, 16, 40)
    run = (path, contigs, guides, "R", 3, SiteOptions(4, 1, 1))
    whole = found_in(*run, at_once=1000)
    assert len(whole) > 100
    for module_of_it in (files, module):
        monkeypatch.setattr(module_of_it, "context_of", lambda reach: reach + 100)
    monkeypatch.setattr(files, "_BLOCK_BYTES", 200)
    monkeypatch.setattr("bwarp.variants.windows._WINDOWS_AT_ONCE", 16)
    file = VariantFile(path, reference_of(contigs))
    assert len(list(file.stretches(25, 1))) > 5
    for threads in (1, 2):
        assert found_in(*run, at_once=1, threads=threads) == whole
