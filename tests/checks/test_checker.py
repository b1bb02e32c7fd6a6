"""Counts do not depend on how records are grouped, and damaged records are reported."""

import random
import struct
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import bwarp.checks.checker
from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.external_sort import whole_records
from bwarp.bam.header import split_header
from bwarp.checks.checker import Checker
from bwarp.errors import InputError
from tests.helpers.cases.random_bam import write_random_bam
from tests.helpers.cases.small_bam_records import header_of, record
from tests.helpers.oracles.checked_lists import as_lists


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "r.bam"
    write_random_bam(path, 11, 600)
    with open(path, "rb") as file:
        header, blocks = split_header(path, read_bgzf(file, path))
        whole = b"".join(bytes(block) for block in blocks)
        return header, next(whole_records(path, iter([whole]), header.contig_starts))


REGIONS = [(10, 600), (200, 210), (3000, 3900), (590, 3001)]


def test_groups_and_threads_change_nothing(records, monkeypatch):
    header, (data, starts) = records[0], (records[1].data, records[1].starts)
    whole = Checker(header, "x.bam", REGIONS)
    whole.add(data, starts)
    expected = as_lists(whole.finish())
    assert sum(expected[2]) == sum(header.lengths)
    rng = random.Random(4)
    edges = sorted({0, starts.size - 1, *(rng.randrange(starts.size) for _ in range(90))})
    groups = list(pairwise(edges))
    for threads in (1, 3):
        checker = Checker(header, "x.bam", REGIONS)
        with ThreadPoolExecutor(threads) as pool:
            # Groups are counted in any order, and taken in that of the file.
            jobs = {
                group: pool.submit(checker.count, data, starts[slice(*group)])
                for group in rng.sample(groups, len(groups))
            }
            for group in groups:
                checker.take(jobs[group].result())
        assert as_lists(checker.finish()) == expected
    monkeypatch.setattr(bwarp.checks.checker, "_RECORDS_A_GROUP", 7)
    for threads in (1, 3):
        grouped = Checker(header, "x.bam", REGIONS, threads)
        grouped.add(data, starts)
        assert as_lists(grouped.finish()) == expected


def test_order_of_records(records):
    header, (data, starts) = records[0], (records[1].data, records[1].starts)
    order = np.random.default_rng(1).permutation(starts.size - 1).astype(np.uint32)
    pieces = [data[starts[i] : starts[i + 1]] for i in order]
    shuffled = np.concatenate(pieces)
    at = np.concatenate([[0], np.cumsum([piece.size for piece in pieces])])
    one, other = Checker(header, "x.bam"), Checker(header, "x.bam")
    one.add(data, starts)
    other.add(shuffled, at, np.argsort(order).astype(np.uint32))
    assert as_lists(one.finish()) == as_lists(other.finish())


def test_no_records():
    checked = Checker(header_of({"one": 7, "two": 3}), "x.bam", [(2, 5)]).finish()
    assert [contig.bases.tolist() for contig in checked.depths] == [[7], [3]]
    assert [contig.of_regions.tolist() for contig in checked.depths] == [[3], [0]]
    assert checked.region_sums.tolist() == [0]


def damaged(change) -> bytes:
    good = bytearray(record("a", 0, 5, 0, [(3, 0)], b"text"))
    change(good)
    return bytes(good)


@pytest.mark.parametrize(
    "data",
    [
        damaged(lambda data: struct.pack_into("<i", data, 20, -1)),
        damaged(lambda data: struct.pack_into("<i", data, 20, 1 << 30)),
        damaged(lambda data: struct.pack_into("<i", data, 20, 7)),
        damaged(lambda data: struct.pack_into("<i", data, 4, 1)),
        damaged(lambda data: struct.pack_into("<i", data, 4, -2)),
        damaged(lambda data: data.__setitem__(-1, 65)),
        damaged(lambda data: data.__setitem__(44, ord("Q"))),
    ],
)
def test_damaged_records(data):
    checker = Checker(header_of({"one": 50}), "x.bam")
    with pytest.raises(InputError, match=r"^x\.bam: a record is damaged: write the file again$"):
        checker.add(np.frombuffer(data, np.uint8), np.array([0, len(data)]))


def test_overlapping_mates_need_their_cigars():
    data = bytearray(record("a", 0, 5, 1 | 2 | 32 | 64, [(9, 0)]))
    struct.pack_into("<ii", data, 24, 0, 8)
    checker = Checker(header_of({"one": 50}), "x.bam")
    with pytest.raises(InputError, match=r"^x\.bam: a pair has no tag MC, which --qc needs"):
        checker.add(np.frombuffer(data, np.uint8), np.array([0, len(data)]))


def test_records_beyond_their_contig_end_there():
    data = record("a", 0, 45, 0, [(20, 0)]) + record("b", 1, 0, 0, [(4, 0)])
    checker = Checker(header_of({"one": 50, "two": 9}), "x.bam")
    checker.add(np.frombuffer(data, np.uint8), np.array([0, len(data) // 2, len(data)]))
    found = checker.finish()
    assert [contig.bases.tolist() for contig in found.depths] == [[45, 5], [5, 4]]
