"""Seeds with GPU kernels in plain Python, against comparing every window.

Blocks have one warp, and the workspace a few elements, so that lists overflow.
"""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.errors import UsageError
from bwarp.gpu import ptx_reference
from bwarp.gpu.cuda import cuda
from bwarp.gpu.kernel import kernels_in
from bwarp.index import device_index_cuda, locate_cuda, memory_plan
from bwarp.index.locate_cpu import locate
from bwarp.reference import text_of
from bwarp.seeding import (
    backtracking_cuda,
    exact_cuda,
    find_cuda,
    locate_hits_cuda,
    search_schemes_cuda,
)
from bwarp.seeding import exact_cuda as both_strands_cuda
from bwarp.seeding import search_schemes_cpu as search_schemes
from bwarp.seeding import search_schemes_cuda as search_scheme_steps_cuda
from bwarp.seeding.find import find_in_passes, prepare
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.kmers import whole_queries
from bwarp.sequence import unpack
from tests.helpers.cases.chunked_indexes import save_chunks
from tests.helpers.gpu import emulated_cuda
from tests.helpers.gpu.pretended_device import (
    DeviceArray,
    Launcher,
    pair_sorter,
    pretend_arrays,
)
from tests.helpers.oracles.index_oracle import index_of, reference_of
from tests.helpers.oracles.seed_hits_oracle import (
    batch_of,
    counts_when_stopped,
    hits_by_comparing,
    hits_of_parts,
    kmers_like,
    random_bases,
)

MODULES = (
    device_index_cuda,
    locate_cuda,
    both_strands_cuda,
    exact_cuda,
    search_schemes_cuda,
    backtracking_cuda,
    locate_hits_cuda,
)
KERNELS_OF = {search_schemes_cuda: search_scheme_steps_cuda}


@pytest.fixture
def emulated(monkeypatch):
    for module in MODULES:
        monkeypatch.setattr(module, "_THREADS", 32)
        for kernel in kernels_in(KERNELS_OF.get(module, module)):
            monkeypatch.setattr(module, kernel.py_func.__name__, Launcher(kernel))
    monkeypatch.setattr(search_schemes_cuda, "_BLOCKS_A_PROCESSOR", 2)
    monkeypatch.setattr(search_schemes, "LONGEST_START", 3)
    choose = cache(search_schemes.choose_schemes.__wrapped__)
    monkeypatch.setattr(search_schemes_cuda, "choose_schemes", choose)
    monkeypatch.setattr(device_index_cuda, "pair_sorter", pair_sorter)
    monkeypatch.setattr(cuda, "pinned_array", np.empty)
    monkeypatch.setattr(memory_plan, "SHORTEST_STRING", 2)
    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 4096)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 256)
    monkeypatch.setattr(device_index_cuda, "free_memory", lambda: 10**9)
    thread = emulated_cuda._Thread
    operations = {
        "popc": lambda bits: int(bits).bit_count(),
        "load_uint32x2": lambda array, at: ptx_reference.load_uint32x2(array.array, int(at)),
        "load_uint32x4": lambda array, at: ptx_reference.load_uint32x4(array.array, int(at)),
    }
    for name, operation in operations.items():
        monkeypatch.setattr(thread, name, staticmethod(operation), raising=False)
    pretend_arrays(monkeypatch)
    processor = SimpleNamespace(MULTIPROCESSOR_COUNT=1)
    monkeypatch.setattr(cuda, "get_current_device", lambda: processor)
    monkeypatch.setattr(DeviceArray, "copy_to_device", np.copyto, raising=False)
    monkeypatch.setattr(DeviceArray, "copy_to_host", copy_to_host)


def copy_to_host(array, host=None):
    """Copy like a device array: into `host` if given."""
    if host is None:
        return np.array(array)
    assert (host.shape, host.dtype) == (array.shape, array.dtype)
    host[:] = array
    return host


UNIT = random_bases(25, 1)
CONTIGS = [
    UNIT + UNIT + random_bases(30, 2) + UNIT[:20] + b"A" * 15,
    random_bases(20, 3) + b"NNN" + UNIT + b"N",
]


def check(index, k, options, count=10):
    """Check that a search agrees with comparing, and counts k-mers over the limit."""
    kmers = kmers_like(CONTIGS, k, options.mismatches, count, k)
    words = whole_queries(batch_of({str(i): kmer for i, kmer in enumerate(kmers)})).words
    found = find_cuda.find_seeds(index, words, k, options)
    reference = getattr(index, "index", index).reference
    expected = hits_by_comparing(CONTIGS, kmers, options.mismatches)
    counts = np.bincount([hit[0] for hit in expected], minlength=count)
    over = np.flatnonzero(counts > (options.max_hits or 10**9))
    assert found.over_kmers.tolist() == over.tolist()
    most = options.max_hits + 1 if options.stops else 10**9
    assert found.over_counts.tolist() == np.minimum(counts[over], most).tolist()
    assert hits_of_parts(found.hits, reference) == [hit for hit in expected if hit[0] not in over]


INDEX = {rates: index_of(CONTIGS, *rates) for rates in ((64, 1), (64, 3), (32, 4), (96, 2))}


@pytest.mark.parametrize("locate_mode", ["auto", "gpu", "hybrid", "cpu"])
@pytest.mark.parametrize("rates", INDEX)
def test_exact(emulated, rates, locate_mode):
    check(INDEX[rates], 12, SeedOptions(max_hits=4, locate=locate_mode))


@pytest.mark.parametrize("k", [8, 12, 33, 40])
def test_exact_lengths(emulated, k):
    check(INDEX[64, 3], k, SeedOptions(max_hits=0))


@pytest.mark.parametrize(
    ("k", "mismatches", "rates", "locate_mode"),
    [
        (8, 1, (64, 3), "auto"),
        (12, 2, (64, 1), "auto"),
        (12, 2, (96, 2), "hybrid"),
        (11, 1, (32, 4), "cpu"),
        (40, 2, (64, 3), "auto"),
    ],
)
@pytest.mark.parametrize("algorithm", ["schemes", "backtracking"])
def test_inexact(emulated, k, mismatches, rates, locate_mode, algorithm):
    for max_hits in (6, 1) if algorithm == "backtracking" else (6,):
        options = SeedOptions(mismatches, max_hits, algorithm, locate_mode)
        check(INDEX[rates], k, options, count=4)


@pytest.mark.parametrize("mismatches", [1, 2])
def test_backtracking_stops_above_the_limit(emulated, mismatches):
    kmers = [*kmers_like(CONTIGS, 8, mismatches, 4, 1), b"A" * 8]
    words = whole_queries(batch_of({str(i): kmer for i, kmer in enumerate(kmers)})).words
    hits = hits_by_comparing(CONTIGS, kmers, mismatches)
    for max_hits in (1, 4):
        options = SeedOptions(mismatches, max_hits, "backtracking")
        device = find_cuda.prepare(INDEX[64, 3], options)
        [(_, counts, _)] = find_cuda._search_batches(device, words, 8, options)
        expected = counts_when_stopped(CONTIGS, kmers, hits, max_hits)
        assert counts.tolist() == expected.tolist()


def test_lists_that_overflow_divide_the_batch(emulated, monkeypatch):
    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 40)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 40)
    monkeypatch.setattr(search_schemes_cuda, "elements_an_item", lambda *_: 2)
    sizes = []
    search = find_cuda._search

    def counted(device_index, words, *arguments):
        outcome = search(device_index, words, *arguments)
        sizes.append((len(words), outcome[2]))
        return outcome

    monkeypatch.setattr(find_cuda, "_search", counted)
    check(INDEX[64, 3], 8, SeedOptions(2, 0), count=8)
    assert (8, True) in sizes
    assert sum(size for size, overflow in sizes if not overflow) == 8


def test_parts_of_whole_kmers(emulated, monkeypatch):
    monkeypatch.setattr(find_cuda, "HITS_AT_ONCE", 7)
    monkeypatch.setattr(device_index_cuda, "PINNED_BYTES", 60)
    check(INDEX[64, 3], 8, SeedOptions(max_hits=0))


def test_waiting_items_may_be_on_the_host(emulated, monkeypatch):
    moved = []
    on_host = locate_hits_cuda.HeldHits.on_host
    monkeypatch.setattr(
        locate_hits_cuda.HeldHits, "on_host", lambda held: moved.append(held) or on_host(held)
    )
    monkeypatch.setattr(find_cuda, "_ROOM_A_ELEMENT", 0)
    check(INDEX[64, 3], 9, SeedOptions(max_hits=0))
    assert moved


def test_prepare_keeps_a_suitable_index(emulated):
    exact = find_cuda.prepare(INDEX[64, 3], SeedOptions())
    assert find_cuda.prepare(exact, SeedOptions()) is exact
    inexact = find_cuda.prepare(exact, SeedOptions(mismatches=1))
    assert inexact is not exact
    assert inexact.reverse is not None
    assert find_cuda.prepare(inexact, SeedOptions()) is inexact


def test_exact_seeds_need_no_reverse(emulated):
    index = replace(INDEX[64, 3], reverse=None)
    ready = prepare(index, SeedOptions(), "cuda")
    assert ready.reverse is None
    check(ready, 9, SeedOptions())
    for asked in (index, ready):
        with pytest.raises(UsageError, match="has no reverse BWT, which a search with mismatches"):
            prepare(asked, SeedOptions(mismatches=1), "cuda")


@pytest.mark.parametrize("rates", INDEX)
def test_whole_suffix_array_and_text(emulated, rates):
    index = INDEX[rates]
    made = device_index_cuda.make_device_index(index, device_index_cuda.search_needs(False, "yes"))
    rows = np.arange(index.forward.n_rows, dtype=np.uint32)
    assert np.array_equal(made.suffixes.positions, locate(index, rows))
    text = text_of(index.reference)
    codes = unpack(np.asarray(made.text.bases), 0, text.size)
    assert np.array_equal(codes, np.where(text == 0, 0, text - 1))


@pytest.mark.parametrize("options", [SeedOptions(max_hits=4), SeedOptions(1, 0, locate="hybrid")])
def test_an_index_in_chunks(emulated, tmp_path, options):
    """All chunks are on the GPU, each with its share of the memory; lengths are mixed."""
    index = save_chunks(reference_of(CONTIGS), 70, tmp_path / "index")
    kmers = [kmers_like(CONTIGS, k, 1, 6, k)[-1] for k in (8, 12, 9, 12, 33)] + [b"A" * 8]
    batch = whole_queries(batch_of({str(i): kmer for i, kmer in enumerate(kmers)}))
    expected = hits_by_comparing(CONTIGS, kmers, options.mismatches)
    counts = np.bincount([hit[0] for hit in expected], minlength=len(kmers))
    over = np.flatnonzero(counts > (options.max_hits or 10**9)).tolist()
    ready = prepare(index, options, "cuda")
    hits, found_over = [], []
    for found in find_in_passes(ready, batch, options, "cuda"):
        found_over += zip(found.over_kmers.tolist(), found.over_counts.tolist(), strict=True)
        hits += hits_of_parts(found.hits, index.reference)
    assert hits == [hit for hit in expected if hit[0] not in over]
    assert found_over == [(kmer, counts[kmer]) for kmer in over]
