"""The search with GPU kernels in plain Python finds the same sites as the CPU engine."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import GpuMemoryError
from bwarp.gpu import memory_pool as workspace
from bwarp.offtargets import find_cuda, pam_sites_cuda, site_filter_cuda
from bwarp.offtargets.find import find_sites, search_one_site
from bwarp.offtargets.guides import guides_of, parse_pam
from bwarp.offtargets.hits import SiteOptions, joined_hits
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.oracles.index_oracle import reference_of
from tests.helpers.oracles.seed_hits_oracle import GENOMES, random_bases
from tests.offtargets.test_find import EDGES, guides_from

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered in scalar")


@pytest.fixture
def emulated(monkeypatch):
    """Simulate a GPU with one warp and two guides per block, and with very short lists."""
    workspace._spare.clear()
    pretend_gpu(monkeypatch, [])
    for module in (pam_sites_cuda, site_filter_cuda, find_cuda):
        monkeypatch.setattr(module, "THREADS", 32, raising=False)
    monkeypatch.setattr(
        emulated_cuda._Thread,
        "load_uint32x4",
        staticmethod(lambda array, at: tuple(array[int(at) + i] for i in range(4))),
        raising=False,
    )
    monkeypatch.setattr(find_cuda, "free_memory", lambda: 1 << 30)
    monkeypatch.setattr(find_cuda, "require_memory", lambda *_: None)
    monkeypatch.setattr(find_cuda, "PAIRS", 3)
    for module in (site_filter_cuda, find_cuda):
        monkeypatch.setattr(module, "BLOCK_SITES", 32 * 32)
        monkeypatch.setattr(module, "GUIDES_A_BLOCK", 2)
    site_filter_cuda.filter_kernel.cache_clear()
    yield
    site_filter_cuda.filter_kernel.cache_clear()
    workspace._spare.clear()


def hits_of(contigs, guides, pam, side, options, backend, threads=1, stretch=None):
    reference, pam = reference_of(contigs), parse_pam(pam, side)
    guides = guides_of(list(guides), list(guides.values()))
    found = find_sites(reference, guides, pam, options, threads, backend, stretch)
    return joined_hits([hits for _, hits in found])


def check(contigs, guides, pam, side, options, **how):
    wanted = hits_of(contigs, guides, pam, side, options, "cpu")
    found = hits_of(contigs, guides, pam, side, options, "cuda", **how)
    for name, column in vars(wanted).items():
        np.testing.assert_array_equal(getattr(found, name), column, err_msg=name)
        assert getattr(found, name).dtype == column.dtype
    return wanted.count


# Just large enough for all difficult cases, because plain Python checks every position.
SMALL_GENOMES = {
    "random": GENOMES["random"],
    "repeats": GENOMES["repeats"][1:2],
    "edges": EDGES,
    "many contigs": GENOMES["many contigs"][:20],
}

CASES = [
    ("random", "RNN,NCN", 3, SiteOptions(4, 0, 0)),
    ("repeats", "none", 5, SiteOptions(2, 1, 1)),
    ("edges", "NN", 3, SiteOptions(3, 1, 2)),
    ("edges", "TTN,RCN", 5, SiteOptions(6, 2, 0)),
    ("many contigs", "none", 3, SiteOptions(2, 0, 2)),
    ("repeats", "NNRR,NG", 3, SiteOptions(3, 1, 1)),
    ("edges", "TTN,T", 5, SiteOptions(3, 0, 1, True)),
]


@pytest.mark.parametrize(("genome", "pam", "side", "options"), CASES)
def test_as_the_cpu(emulated, genome, pam, side, options):
    contigs = SMALL_GENOMES[genome]
    guides = guides_from(contigs, 3)
    n_hits = check(contigs, guides, pam, side, options)
    assert check(contigs, guides, pam, side, options, threads=2, stretch=192) == n_hits
    assert n_hits > 0


def test_all_alignments(emulated):
    contigs = GENOMES["repeats"]
    guides = guides_from(contigs, 1, n=2)
    assert check(contigs, guides, "VN", 3, SiteOptions(2, 1, 1, True), stretch=320) > 5


def test_long_guides_have_a_second_word(emulated):
    contigs = [random_bases(70, 8)]
    text = contigs[0].decode()
    guides = {"a": text[3:43], "b": text[20:53], "c": text[30:62], "d": text[1:16]}
    assert check(contigs, guides, "none", 3, SiteOptions(1, 0, 1)) >= 4
    assert check(contigs, guides, "none", 5, SiteOptions(1, 1, 0)) >= 4


def test_lists_that_may_not_grow_are_filled_in_parts(emulated, monkeypatch):
    contigs = [b"A" * 100]
    guides = {"a": "A" * 15, "b": "A" * 16, "c": "C" * 15}
    # The free memory suffices for sites, and for the initial number of pairs.
    monkeypatch.setattr(find_cuda, "free_memory", lambda: 6)
    sizes = []
    align = find_cuda._Engine._align

    def aligned(engine, *arguments):
        sizes.append(arguments[-1])
        return align(engine, *arguments)

    monkeypatch.setattr(find_cuda._Engine, "_align", aligned)
    monkeypatch.setattr(find_cuda, "PAIRS", 40)
    n_hits = check(contigs, guides, "none", 3, SiteOptions(0), stretch=64)
    assert n_hits == 86 + 85
    assert max(sizes) <= 40
    assert sum(sizes) >= n_hits


def test_a_gpu_with_little_memory_takes_short_stretches(emulated, monkeypatch):
    assert find_cuda.stretch_to_search() == 1 << 26
    monkeypatch.setattr(find_cuda, "free_memory", lambda: 1 << 33)
    assert find_cuda.stretch_to_search() == find_cuda.MOST_POSITIONS
    monkeypatch.undo()
    from bwarp.gpu import available_memory

    monkeypatch.setattr(available_memory, "free_memory", lambda: 10_000_000)
    monkeypatch.setattr(find_cuda, "free_memory", lambda: 10_000_000)
    with pytest.raises(
        GpuMemoryError, match="the search requires 0.1 GB of GPU memory, but only 0.0 GB"
    ):
        find_cuda.stretch_to_search()


def test_no_site_at_all(emulated):
    assert check([b"ACGT" * 20], {"a": "ACGTACGTACGTACG"}, "NGG", 3, SiteOptions(1)) == 0
    assert check([b"N" * 50], {"a": "ACGTACGTACGTACG"}, "none", 3, SiteOptions(1)) == 0


def test_one_site_needs_every_kernel(emulated, monkeypatch):
    launched = []
    for name in ("list_sites", "align_pairs", "filter_kernel"):
        monkeypatch.setattr(find_cuda, name, Noted(name, getattr(find_cuda, name), launched))
    guides = guides_of(["a"], ["ACGTTGCAAGCTTAGC"])
    assert search_one_site(guides, parse_pam("NGG"), SiteOptions(1, 1, 0), "cuda") >= 1
    assert set(launched) == {"list_sites", "align_pairs", "filter_kernel"}


class Noted:
    """A kernel, or a function that returns one, whose uses are recorded."""

    def __init__(self, name, one, launched):
        self.name, self.one, self.launched = name, one, launched

    def __getitem__(self, configuration):
        self.launched.append(self.name)
        return self.one[configuration]

    def __call__(self, *arguments):
        self.launched.append(self.name)
        return self.one(*arguments)
