"""The GPU builds the same index as the CPU, to the byte."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.index import build_cpu
from bwarp.index.parameters import IndexParameters
from tests.helpers.oracles.index_oracle import reference_of

pytestmark = pytest.mark.gpu

contigs_of_letters = st.lists(
    st.lists(st.integers(1, 4), min_size=1, max_size=80), min_size=1, max_size=30
)
parameters = st.builds(
    IndexParameters, st.sampled_from([32, 64, 96, 320, 1024]), st.integers(1, 9), st.integers(0, 6)
)


def assert_same(contigs, parameters):
    from bwarp.index import build_cuda

    reference = reference_of([bytes(b"ACGT"[base - 1] for base in contig) for contig in contigs])
    occ_rate = parameters.occ_rate
    expected, *expected_others = build_cpu.build_forward(reference, parameters)
    built, *others = build_cuda.build_forward(reference, parameters, 2)
    expected_turned = build_cpu.build_reverse(reference, occ_rate)
    turned = build_cuda.build_reverse(reference, occ_rate, 2)
    for one, other in ((built, expected), (turned, expected_turned)):
        for part in fields(other):
            a, b = getattr(one, part.name), getattr(other, part.name)
            assert np.array_equal(a, b), part.name
            assert np.asarray(a).dtype == np.asarray(b).dtype, part.name
            assert np.shape(a) == np.shape(b), part.name
    for one, other in zip(others, expected_others, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


@settings(deadline=None)
@given(contigs_of_letters, parameters)
def test_small_texts(contigs, parameters):
    assert_same(contigs, parameters)


@pytest.mark.parametrize("n_contigs", [1, 7, 100_000])
def test_millions_of_letters(n_contigs):
    rng = np.random.default_rng(n_contigs)
    letters = rng.integers(1, 5, 2_000_000)
    letters[500_000:600_000] = letters[:100_000]
    assert_same(np.array_split(letters, n_contigs), IndexParameters(64, 4, 10))


def test_kernels_are_launched_with_the_types_they_state():
    from bwarp.gpu import sums_and_sorts as prefix_sum
    from bwarp.gpu.kernel import kernels_in
    from bwarp.index import build_cuda, bwt_cuda, packed_text_cuda, suffix_array_cuda
    from bwarp.index import bwt_cuda as prefix_table_cuda

    reference = reference_of([b"A" * 5000, b"ACGT" * 700])
    build_cuda.build_forward(reference, IndexParameters(64, 4, 3))
    build_cuda.build_reverse(reference, 64)
    for module in (bwt_cuda, packed_text_cuda, prefix_sum, prefix_table_cuda, suffix_array_cuda):
        for kernel in kernels_in(module):
            [types] = kernel.signatures
            # Such short texts have a single tile, and no others to add.
            launched = set() if kernel is prefix_sum.add_tiles else {types}
            assert launched <= set(kernel.dispatcher.overloads) <= {types}, kernel.py_func.__name__


def test_a_text_that_does_not_fit_the_gpu(monkeypatch):
    from bwarp.errors import UsageError
    from bwarp.index import build_cuda

    monkeypatch.setattr(build_cuda, "free_memory", lambda: 10**8)
    with pytest.raises(UsageError) as error:
        build_cuda.build_forward(reference_of([b"A"]), IndexParameters(64, 4, 0))
    message = str(error.value)
    assert message.startswith(
        "indexing 2 bases requires at least 0.4 GB of GPU memory, but only 0.1 GB "
    )
    assert message.endswith("are free: use --backend cpu, or a GPU with more memory")
