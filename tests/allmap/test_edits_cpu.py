"""Furthest-reaching rows against plain dynamic programming."""

import random

import numpy as np
import pytest

from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.verify_cpu import (
    LEFT,
    NO_DISTANCE,
    RIGHT,
    Compared,
    distances_to,
    distances_with_few_gaps,
    room_to_work,
)
from tests.helpers.oracles.loci_oracle import hard_genome, hard_reads, stretch_distances


def pairs():
    for number in range(40):
        rng = random.Random(number)
        contigs = hard_genome(rng)
        edits = rng.randrange(5)
        (read,) = hard_reads(rng, contigs, 1, edits)
        text = [b if b < 4 else 0 for b in contigs[0]]
        yield rng, read, text, edits


@pytest.mark.parametrize("few", [False, True])
def test_from_every_start(few):
    for rng, read, text, edits in pairs():
        gaps = rng.randrange(1, edits) if few and edits > 1 else rng.choice([0, edits])
        if few != (0 < gaps < edits):
            continue
        distances = stretch_distances(read, text, gaps)
        reach = np.empty(room_to_work(gaps), np.int64)
        found = np.empty(2 * gaps + 1, np.uint8)
        genome, reads = blocks_of(np.array(text, np.uint8)), blocks_of(np.array(read, np.uint8))
        for start in range(len(text)):
            room = len(text) - start
            given = (genome, reads, Compared(start, room, 0, len(read)), edits, gaps)
            if few:
                distances_with_few_gaps(*given, reach, found)
            else:
                distances_to(*given, RIGHT, reach, found)
            wanted = []
            for k in range(-gaps, gaps + 1):
                d = distances.get((start, start + len(read) + k), NO_DISTANCE)
                wanted.append(d if d <= edits else NO_DISTANCE)
            assert found.tolist() == wanted


def test_before_every_end():
    for rng, read, text, edits in pairs():
        gaps = rng.choice([0, edits])
        distances = stretch_distances(read, text, gaps)
        reach = np.empty(room_to_work(gaps), np.int64)
        found = np.empty(2 * gaps + 1, np.uint8)
        genome, reads = blocks_of(np.array(text, np.uint8)), blocks_of(np.array(read, np.uint8))
        for end in range(len(text) + 1):
            compared = Compared(end, end, len(read), len(read))
            least = distances_to(genome, reads, compared, edits, gaps, LEFT, reach, found)
            wanted = []
            for k in range(-gaps, gaps + 1):
                d = distances.get((end - len(read) - k, end), NO_DISTANCE)
                wanted.append(d if d <= edits else NO_DISTANCE)
            assert found.tolist() == wanted
            assert least == min([*wanted, edits + 1])
