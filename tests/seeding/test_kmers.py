"""K-mers cut from sequences, in one or several pieces, against slices of strings."""

import numpy as np
import pytest

import bwarp.seeding.find as find
from bwarp.io.fastx import SequenceBatch
from bwarp.seeding.find import kmer_batches
from bwarp.seeding.kmers import REASONS, KmerBatch
from bwarp.seeding.queries import read_queries
from bwarp.sequence import decode, unpack
from tests.helpers.oracles.seed_hits_oracle import batch_of, random_bases

QUERIES = {
    "long": random_bases(300, 1),
    "empty": b"",
    "short": b"ACGTACG",
    "as long": random_bases(20, 2),
    "N": b"N" * 25,
    "with N": random_bases(40, 3) + b"n" + random_bases(19, 4) + b"R" + random_bases(31, 5),
    "lower and RNA": b"acguacguacguacguacguu",
    "last": random_bases(64, 6),
    "longer": random_bases(65, 7),
}


def letters_of(kmers: KmerBatch, number: int) -> str:
    words = np.append(kmers.words[number], np.uint64(0))
    return decode(unpack(words, 0, int(kmers.lengths[number]))).decode()


def as_lists(batches) -> tuple[list, list]:
    """Return (query, start, letters) of k-mers and (query, start, reason) of skipped ones."""
    kmers, skipped = [], []
    for batch in batches:
        where = zip(batch.queries.tolist(), batch.starts.tolist(), strict=True)
        kmers += [(*at, letters_of(batch, i)) for i, at in enumerate(where)]
        skipped += [(query, start, REASONS[reason]) for query, start, reason in batch.skipped]
    return kmers, skipped


def by_slicing(queries, k, step) -> tuple[list, list]:
    kmers, skipped = [], []
    for number, letters in enumerate(queries.values()):
        text = letters.decode().upper().replace("U", "T")
        if len(text) < k:
            skipped.append((number, 0, "shorter than the k-mer length"))
        for start in range(0, len(text) - k + 1, step):
            kmer = text[start : start + k]
            if set(kmer) <= set("ACGT"):
                kmers.append((number, start, kmer))
            else:
                skipped.append((number, start, "ambiguous base"))
    return kmers, skipped


@pytest.mark.parametrize("windows", [1, 2, 7, 50, 1 << 20])
def test_cut_kmers_are_slices_whatever_the_pieces(monkeypatch, windows):
    monkeypatch.setattr(find, "WINDOWS_AT_ONCE", windows)
    for k in (8, 20, 32, 33, 64):
        for step in (1, 3, 20, 1000):
            batches = list(kmer_batches(batch_of(QUERIES), k, step))
            assert as_lists(batches) == by_slicing(QUERIES, k, step)
            assert max(batch.count + len(batch.skipped) for batch in batches) <= windows


def test_whole_queries():
    kmers, skipped = as_lists(kmer_batches(batch_of(QUERIES)))
    numbers = {name: number for number, name in enumerate(QUERIES)}
    whole = {"as long": QUERIES["as long"], "last": QUERIES["last"]}
    whole["lower and RNA"] = b"ACGTACGTACGTACGTACGTT"
    expected = [(numbers[name], 0, whole[name].decode()) for name in QUERIES if name in whole]
    assert kmers == expected
    assert skipped == [
        (numbers["long"], 0, "longer than 64"),
        (numbers["empty"], 0, "shorter than the k-mer length"),
        (numbers["short"], 0, "shorter than the k-mer length"),
        (numbers["N"], 0, "ambiguous base"),
        (numbers["with N"], 0, "longer than 64"),
        (numbers["longer"], 0, "longer than 64"),
    ]


def test_unused_bits_are_zero():
    (batch,) = kmer_batches(batch_of({"a": b"T" * 40, "b": b"T" * 9}))
    assert batch.words.tolist() == [[2**64 - 1, 0xFFFF << 48], [0x3FFFF << 46, 0]]


def test_no_queries():
    empty = batch_of({})
    assert isinstance(empty, SequenceBatch)
    assert as_lists(kmer_batches(empty)) == ([], [])
    assert as_lists(kmer_batches(empty, 20)) == ([], [])


@pytest.mark.parametrize("k", [None, 9])
def test_threads_change_nothing(monkeypatch, tmp_path, k):
    monkeypatch.setattr("bwarp.seeding.find.WINDOWS_AT_ONCE", 7)
    monkeypatch.setattr("bwarp.io.compressed_files.CHUNK_BYTES", 100)
    path = tmp_path / "q.fa"
    lines = (f">q{i} x\n{'ACGTRCCATGA'[i % 5 :] * (i % 4 + 1)}\n" for i in range(60))
    path.write_text("".join(lines))
    found = []
    for threads in (1, 4):
        rows = []
        for kmers, names in read_queries(path, k, 1, threads):
            columns = (kmers.queries, kmers.starts, kmers.words[:, 0], kmers.lengths)
            for query, *rest in zip(*(column.tolist() for column in columns), strict=True):
                rows.append((names.name(query), *rest))
            skipped = kmers.skipped.tolist()
            rows += [(names.name(query), *rest) for query, *rest in skipped]
        found.append(rows)
    assert found[0] == found[1]
    assert len({row[0] for row in found[0]}) == 60
