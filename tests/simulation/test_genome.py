"""Genomes have the requested features, and equal parameters give the same genome."""

import hashlib

import numpy as np
import pytest

from bwarp.errors import UsageError
from bwarp.simulation.genome import GenomeParameters, simulate_genome

PLAIN = {
    "repeat_fraction": 0.0,
    "tandem_fraction": 0.0,
    "duplication_fraction": 0.0,
    "n_fraction": 0.0,
}


def test_the_number_of_threads_changes_nothing():
    parameters = GenomeParameters(300_000, contigs=3, seed=5, iupac_letters=9)
    one, many = simulate_genome(parameters, 1), simulate_genome(parameters, 7)
    assert one.names == many.names == ("chr1", "chr2", "chr3")
    for name in ("codes", "offsets", "repeats", "iupac_positions", "iupac_letters"):
        assert np.array_equal(getattr(one, name), getattr(many, name))
    assert hashlib.md5(one.codes).hexdigest() == "9596d539fc234faf27884279fbeb43ec"


def test_another_seed_is_another_genome():
    one, two = (simulate_genome(GenomeParameters(2000, seed=seed, **PLAIN)) for seed in (1, 2))
    # Two independent bases are equal with probability 2 (0.295^2 + 0.205^2) = 0.258.
    assert int((one.codes == two.codes).sum()) == 517


@pytest.mark.parametrize(
    ("length", "contigs", "lengths"),
    [
        (1, 1, [1]),
        (5, 5, [1] * 5),
        (6, 1, [6]),
        (300, 2, [249, 51]),
        (900, 3, [499, 300, 101]),
    ],
)
def test_contigs_shrink_from_the_first_to_the_last(length, contigs, lengths):
    genome = simulate_genome(GenomeParameters(length, contigs))
    assert np.diff(genome.offsets).tolist() == lengths
    assert genome.codes.size == length
    assert len(genome.names) == contigs


def test_many_contigs_are_none_empty():
    offsets = simulate_genome(GenomeParameters(1500, contigs=1000)).offsets
    assert np.diff(offsets).min() == 1
    assert offsets[-1] == 1500


def test_gaps_are_at_both_ends_and_have_the_requested_fraction():
    genome = simulate_genome(GenomeParameters(1_000_000, contigs=4, n_fraction=0.05))
    for start, stop in zip(genome.offsets[:-1], genome.offsets[1:], strict=True):
        telomere = int((stop - start) * 0.05 * 0.1)
        assert (genome.codes[start : start + telomere] == 4).all()
        assert (genome.codes[stop - telomere : stop] == 4).all()
    assert int((genome.codes == 4).sum()) == 48_976
    assert not (simulate_genome(GenomeParameters(10_000, n_fraction=0.0)).codes == 4).any()


def distinct_20mers(codes):
    windows = np.lib.stride_tricks.sliding_window_view(codes, 20)
    return np.unique(windows @ 4 ** np.arange(20, dtype=np.int64)).size


@pytest.mark.parametrize(
    ("what", "distinct"),
    [
        ({}, 99_981),
        ({"duplication_fraction": 0.2}, 97_488),
        ({"tandem_fraction": 0.2}, 88_719),
        ({"repeat_fraction": 0.5}, 96_476),
    ],
)
def test_each_kind_of_repeat_repeats_20mers(what, distinct):
    codes = simulate_genome(GenomeParameters(100_000, **(PLAIN | what))).codes
    assert distinct_20mers(codes) == distinct


def test_a_satellite_array_repeats_its_unit_within_two_percent():
    genome = simulate_genome(GenomeParameters(100_000, **(PLAIN | {"tandem_fraction": 0.2})))
    start, stop = genome.repeats[np.argmax(np.diff(genome.repeats))]
    assert stop - start == 14_000
    array = genome.codes[start : start + 3 * 2052]
    unit, copy = array[:200], array[2052 - 20 : 2052 + 220]
    windows = np.lib.stride_tricks.sliding_window_view(copy, 200)
    assert int((windows == unit).sum(axis=1).max()) == 196


def test_repeats_are_sorted_intervals_in_the_genome():
    genome = simulate_genome(GenomeParameters(200_000, contigs=2))
    assert (np.diff(genome.repeats[:, 0]) >= 0).all()
    assert (genome.repeats[:, 1] > genome.repeats[:, 0]).all()
    assert genome.repeats.min() >= 0
    assert genome.repeats.max() <= 200_000


def test_iupac_letters_are_single_ambiguous_bases():
    genome = simulate_genome(GenomeParameters(5000, iupac_letters=50, **PLAIN))
    assert np.flatnonzero(genome.codes == 4).tolist() == genome.iupac_positions.tolist()
    # 50 were drawn, two of them equal.
    assert genome.iupac_positions.size == 49
    assert set(genome.iupac_letters.tobytes()) == set(b"RYSWKM")


def test_extreme_parameters_work():
    everything = GenomeParameters(
        20_000,
        contigs=3,
        gc=1.0,
        repeat_fraction=0.4,
        tandem_fraction=0.2,
        duplication_fraction=0.3,
        n_fraction=0.1,
    )
    assert set(np.unique(simulate_genome(everything).codes)) <= {0, 1, 2, 3, 4}
    only_n = GenomeParameters(1000, **(PLAIN | {"n_fraction": 1.0}))
    # Telomeres and the middle gap take 700 bases; the smaller gaps partly overlap them.
    assert int((simulate_genome(only_n).codes == 4).sum()) == 800


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"contigs": 0}, "contigs 0: a genome must have at least 1 contig"),
        (
            {"length": 3, "contigs": 4},
            "length 3 is too short for 4 contigs: each contig must have at least 1 base",
        ),
        ({"gc": 1.5}, "gc 1.5 is not from 0 to 1"),
        ({"gc": float("nan")}, "gc nan is not from 0 to 1"),
        ({"repeat_fraction": -0.1}, "repeat fraction -0.1 is not from 0 to 1"),
        ({"tandem_fraction": 2.0}, "tandem fraction 2.0 is not from 0 to 1"),
        ({"duplication_fraction": -1.0}, "duplication fraction -1.0 is not from 0 to 1"),
        ({"n_fraction": 1.1}, "n fraction 1.1 is not from 0 to 1"),
        (
            {"repeat_fraction": 0.9, "n_fraction": 0.5},
            "the repeat, tandem, duplication and n fractions sum to 1.48: the maximum is 1",
        ),
        (
            {"iupac_letters": 1001},
            "iupac letters 1001 is not from 0 to the length of the genome",
        ),
    ],
)
def test_parameters_out_of_range(changes, message):
    with pytest.raises(UsageError) as error:
        GenomeParameters(**({"length": 1000} | changes))
    assert str(error.value) == message
