"""Copies of units against a plain loop; properties of the plan of copies."""

import hashlib

import numpy as np
import pytest

from bwarp.sequence import decode, encode, reverse_complement
from bwarp.simulation.genome import (
    FAMILY_KINDS,
    MONOMER,
    N_MOTIFS,
    SATELLITE_UNITS,
    Copies,
    Units,
    plan_interspersed,
    random_bases,
    repeat_units,
    write_copies,
)

KEY = np.uint64(11)


def copies_of(*rows):
    starts, lengths, units, phases, reverse, divergences = zip(*rows, strict=True)
    return Copies(
        *(np.array(column, np.int64) for column in (starts, lengths, units, phases)),
        np.array(reverse, bool),
        np.array(divergences, np.float64),
    )


def test_random_bases_have_the_gc_content_and_do_not_depend_on_threads():
    one, many = np.empty(1_000_003, np.uint8), np.empty(1_000_003, np.uint8)
    random_bases(one, KEY, 0.3)
    random_bases(many, KEY, 0.3, threads=5)
    assert np.array_equal(one, many)
    # 0.35, 0.15, 0.15, 0.35 of a million and three.
    assert np.bincount(one).tolist() == [349_563, 150_344, 150_141, 349_955]


@pytest.mark.parametrize(("gc", "letters"), [(0.0, {0, 3}), (1.0, {1, 2})])
def test_gc_content_at_its_ends(gc, letters):
    codes = np.empty(5000, np.uint8)
    random_bases(codes, KEY, gc)
    assert set(codes.tolist()) == letters


def test_exact_copies_wrap_round_their_unit_on_both_strands():
    unit = b"ACCGTTTGAG"
    units = Units(np.concatenate([encode(b"TTT"), encode(unit)]), np.array([0, 3, 13]))
    codes = np.full(60, 4, np.uint8)
    write_copies(
        codes,
        units,
        copies_of((2, 14, 1, 7, False, 0.0), (20, 25, 1, 3, True, 0.0), (50, 4, 0, 0, False, 0.0)),
        KEY,
    )
    turned = decode(reverse_complement(encode(unit)))
    expected = bytearray(b"N" * 60)
    expected[2:16] = (3 * unit)[7:21]
    expected[20:45] = (4 * turned)[3:28]
    expected[50:54] = b"TTTT"
    assert decode(codes) == bytes(expected)


def test_diverged_copies_have_the_rate_asked_for():
    unit = np.empty(1 << 16, np.uint8)
    random_bases(unit, KEY, 0.5)
    codes = np.empty(200_000, np.uint8)
    units = Units(unit, np.array([0, unit.size]))
    # Copies of 20 bases: indels, a tenth as frequent, rarely hide the substitutions.
    starts = np.arange(0, 200_000, 20)
    n = starts.size
    copies = Copies(
        starts,
        np.full(n, 20),
        np.zeros(n, np.int64),
        starts % 60_000,
        np.zeros(n, bool),
        np.full(n, 0.1),
    )
    write_copies(codes, units, copies, KEY)
    again = np.empty_like(codes)
    write_copies(again, units, copies, KEY, threads=3)
    assert np.array_equal(codes, again)
    truth = unit[(starts % 60_000)[:, None] + np.arange(20)]
    before_any_indel = (codes.reshape(n, 20) != truth)[:, 0]
    # 0.1 of 10,000.
    assert int(before_any_indel.sum()) == 1036


def test_plan_does_not_overlap_and_keeps_to_its_bases():
    length = 400_000
    copies = plan_interspersed(KEY, length, 160_000, 8_000)
    ends = copies.starts + copies.lengths
    assert copies.starts[0] >= 0
    assert (copies.starts[1:] >= ends[:-1]).all()
    assert ends[-1] <= length
    n_families = sum(kind.families for kind in FAMILY_KINDS)
    assert copies.units.max() < n_families + N_MOTIFS
    transposon = copies.units < n_families
    assert int(copies.lengths[transposon].sum()) == 154_167
    assert int(copies.lengths[~transposon].sum()) == 7994
    assert copies.divergences.min() >= 0
    assert copies.divergences[transposon].min() >= 0.01
    assert copies.divergences.max() <= 0.25
    assert copies.reverse.any()
    assert not copies.reverse.all()


def test_a_copy_cut_short_keeps_the_end_of_its_family():
    units = repeat_units(KEY, 0.4)
    plan = plan_interspersed(KEY, 100_000, 60_000, 0)
    codes = np.zeros(100_000, np.uint8)
    exact = Copies(**(plan._asdict() | {"divergences": np.zeros(plan.starts.size)}))
    write_copies(codes, units, exact, KEY)
    for start, length, unit, reverse in zip(
        plan.starts, plan.lengths, plan.units, plan.reverse, strict=True
    ):
        copy = codes[start : start + length]
        family = units.codes[units.offsets[unit] : units.offsets[unit + 1]]
        assert np.array_equal(reverse_complement(copy) if reverse else copy, family[-length:])


def test_an_empty_plan():
    plan = plan_interspersed(KEY, 50, 0, 0)
    assert plan.starts.size == 0
    write_copies(np.zeros(50, np.uint8), repeat_units(KEY, 0.4), plan, KEY)


def test_units_are_families_motifs_and_satellites():
    units = repeat_units(KEY, 0.4)
    lengths = np.diff(units.offsets)
    families = [kind.length for kind in FAMILY_KINDS for _ in range(kind.families)]
    assert lengths[: len(families)].tolist() == families
    motifs = lengths[len(families) : len(families) + N_MOTIFS]
    assert set(motifs.tolist()) == {1, 2, 3, 4, 5, 6}
    assert lengths[len(families) + N_MOTIFS :].tolist() == [12 * MONOMER] * SATELLITE_UNITS
    assert hashlib.md5(units.codes).hexdigest() == "da8a59d7165a3e7041fd469a80c14b8c"


def test_the_monomers_of_a_satellite_unit_are_relatives():
    units = repeat_units(KEY, 0.4)
    monomers = units.codes[-SATELLITE_UNITS * 12 * MONOMER :].reshape(-1, MONOMER)
    # The first bases of a monomer precede its indels: a quarter differ from the consensus, and two
    # monomers differ with probability 1 - (0.75^2 + 0.25^2 / 3).
    assert monomers.shape == (288, MONOMER)
    alike = (monomers[:, None, 0] == monomers[None, :, 0]).mean()
    assert round(float(alike), 4) == 0.5482
