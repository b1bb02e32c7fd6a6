"""The search on a GPU finds the same sites as the CPU engine."""

import numpy as np
import pytest

from bwarp.offtargets.find import find_sites
from bwarp.offtargets.guides import guides_of, parse_pam
from bwarp.offtargets.hits import SiteOptions, joined_hits
from tests.helpers.oracles.index_oracle import reference_of
from tests.helpers.oracles.seed_hits_oracle import random_bases
from tests.offtargets.test_find import ALL_GENOMES, LIMITS, guides_from

pytestmark = pytest.mark.gpu


def check(contigs, guides, pam, side, options, **how):
    reference, pam = reference_of(contigs), parse_pam(pam, side)
    guides = guides_of(list(guides), list(guides.values()))
    wanted, found = (
        joined_hits([hits for _, hits in find_sites(*search, backend=backend, **more)])
        for search in [(reference, guides, pam, options)]
        for backend, more in (("cpu", {"threads": 4}), ("cuda", how))
    )
    for name, column in vars(wanted).items():
        np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)
    return wanted.count


@pytest.mark.parametrize("genome", ALL_GENOMES)
def test_as_the_cpu(genome):
    contigs = ALL_GENOMES[genome]
    pams = [("NGG", 3), ("TTN", 5), ("none", 3), ("none", 5), ("RG,NC", 5), ("NNT", 3)]
    n_hits = 0
    for number, limits in enumerate(LIMITS):
        guides = guides_from(contigs, number)
        pam, side = pams[number % len(pams)]
        for every, threads, stretch in ((False, 1, None), (False, 3, 192), (True, 2, 64)):
            options = SiteOptions(*limits, all_alignments=every)
            n_hits += check(contigs, guides, pam, side, options, threads=threads, stretch=stretch)
    assert n_hits > 20


@pytest.mark.parametrize(
    ("limits", "shortest"), [((4, 0, 0), 15), ((4, 1, 1), 18), ((6, 2, 2), 34)]
)
def test_many_guides_of_all_lengths(limits, shortest):
    """More guides than a block handles, more sites than a batch, and lists that must grow."""
    contigs = [random_bases(60_000, 1), b"A" * 9_000, random_bases(40_000, 2)]
    guides = guides_from(contigs[:1], 3, shortest, 40, 700) | {"a": "A" * 20, "t": "T" * 24}
    assert check(contigs, guides, "none", 3, SiteOptions(*limits), threads=4) > 10_000
    assert check(contigs, guides, "NGG", 3, SiteOptions(*limits), threads=4, stretch=1 << 14) > 5
