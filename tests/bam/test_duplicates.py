"""Duplicates are those of a slow search over both records of each pair, and those of Picard."""

import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pysam
import pytest

from bwarp.bam import duplicates as module
from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.duplicate_metrics import library_size, metrics_text
from bwarp.bam.duplicates import (
    DuplicateMarker,
    Templates,
    empty_templates,
    find_duplicates,
    name_table,
)
from bwarp.bam.external_sort import whole_records
from bwarp.bam.header import split_header
from bwarp.bam.records import Records
from bwarp.errors import InputError
from tests.helpers.cases.duplicate_library import write_library
from tests.helpers.oracles.slow_duplicates import slow_duplicates

SHARES = {1: 0.05, 2: 0.15, 3: 0.4}
PICARD = shutil.which("PicardCommandLine")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    for seed, share in SHARES.items():
        write_library(folder / f"{seed}.bam", seed, 2000, share)
    return folder


def read(path, block_bytes=None):
    """Return the header of a BAM file, and groups of its records."""
    with open(path, "rb") as file:
        header, blocks = split_header(path, read_bgzf(file, path))
        data = b"".join(map(bytes, blocks))
    step = block_bytes or len(data)
    pieces = (data[at : at + step] for at in range(0, len(data), step))
    return header, list(whole_records(path, pieces, header.contig_starts))


def flags_of(marker, groups) -> list[int]:
    """Return the flags of records after `DuplicateMarker.flag`."""
    flags = []
    for records in groups:
        data = records.data.copy()
        marker.flag(Records(data, records.starts, records.keys))
        at = records.starts[:-1] + 18
        flags += (data[at].astype(int) + 256 * data[at + 1].astype(int)).tolist()
    return flags


def name_of(record) -> tuple:
    return record.query_name, dict(record.tags).get("RG")


@pytest.mark.parametrize("barcode_tag", [None, "RX"])
@pytest.mark.parametrize("seed", SHARES)
@pytest.mark.parametrize(("threads", "block_bytes"), [(1, None), (3, 30_000)])
def test_flags_are_those_of_a_slow_search(
    libraries, seed, barcode_tag, threads, block_bytes, monkeypatch
):
    monkeypatch.setattr(module, "_LEAST", 100)
    path = libraries / f"{seed}.bam"
    expected, _ = slow_duplicates(path, barcode_tag)
    assert len(expected) > 50
    header, groups = read(path, block_bytes)
    marker = DuplicateMarker(header, barcode_tag, threads)
    for records in groups:
        marker.add(records)
    marker.find()
    found = flags_of(marker, groups)
    with pysam.AlignmentFile(path) as file:
        records = list(file)
    assert [flag & ~1024 for flag in found] == [record.flag for record in records]
    # All mapped records of a template are flagged.
    assert [bool(flag & 1024) for flag in found] == [
        name_of(record) in expected and not record.is_unmapped for record in records
    ]
    primary = sum(flag & 1024 > 0 and not flag & (256 | 2048) for flag in found)
    assert marker.counts.reads == primary


def test_flags_of_an_earlier_search_are_cleared(libraries):
    header, (records,) = read(libraries / "3.bam")
    marker = DuplicateMarker(header, None, 1)
    marker.find()
    data = records.data.copy()
    data[records.starts[:-1] + 19] |= 4
    flags = flags_of(marker, [Records(data, records.starts, records.keys)])
    assert not any(flag & 1024 for flag in flags)
    assert marker.counts.reads == 0


def by_picard(path, folder, barcode_tag) -> tuple[list, str]:
    """Return the records that Picard wrote, and its metrics."""
    out, text = folder / "out.bam", folder / "out.txt"
    command = [PICARD, "MarkDuplicates", f"I={path}", f"O={out}", f"M={text}", "QUIET=true"]
    command += ["VALIDATION_STRINGENCY=SILENT", "VERBOSITY=ERROR"]
    command += [f"BARCODE_TAG={barcode_tag}"] if barcode_tag else []
    subprocess.run(command, check=True, capture_output=True)
    with pysam.AlignmentFile(out) as file:
        return list(file), text.read_text()


def by_us(path, barcode_tag) -> tuple[list[int], str]:
    header, groups = read(path)
    marker = DuplicateMarker(header, barcode_tag, 2)
    for records in groups:
        marker.add(records)
    marker.find()
    return flags_of(marker, groups), metrics_text(marker.counts)


@pytest.mark.skipif(PICARD is None, reason="needs Picard (apt-get install picard-tools)")
@pytest.mark.parametrize("barcode_tag", [None, "RX"])
@pytest.mark.parametrize("seed", SHARES)
def test_flags_and_counts_are_those_of_picard(libraries, tmp_path, seed, barcode_tag):
    path = libraries / f"{seed}.bam"
    records, metrics = by_picard(path, tmp_path, barcode_tag)
    found, ours = by_us(path, barcode_tag)
    # Picard does not flag secondary and supplementary records of a sorted file.
    differing = [
        record.query_name
        for record, flag in zip(records, found, strict=True)
        if not flag & (256 | 2048) and record.flag != flag
    ]
    assert not differing
    assert table_of(ours) == table_of(metrics)


@pytest.mark.skipif(PICARD is None, reason="needs Picard (apt-get install picard-tools)")
def test_only_ties_differ_from_picard_if_names_have_coordinates(tmp_path):
    path = tmp_path / "in.bam"
    # On different tiles, so that there are no optical duplicates.
    write_library(path, 7, 3000, 0.3, name="A:1:FC:1:{}:7:7")
    records, metrics = by_picard(path, tmp_path, None)
    found, ours = by_us(path, None)
    _, scores = slow_duplicates(path)
    theirs = {name_of(record) for record in records if record.flag & 1024}
    own = {name_of(r) for r, flag in zip(records, found, strict=True) if flag & 1024}
    assert len(own) > 500
    assert 0 < len(own - theirs) < 0.1 * len(own)
    assert sorted(map(scores.get, own - theirs)) == sorted(map(scores.get, theirs - own))
    assert table_of(ours) == table_of(metrics)


def table_of(metrics: str) -> list[str]:
    """Return the lines of the table of libraries, of which Picard's are in arbitrary order."""
    lines = metrics.partition("## METRICS CLASS")[2].split("\n\n")[0].splitlines()
    return sorted(lines)


def templates_of(rng, count: int, singles: float, keys: int) -> Templates:
    templates = empty_templates(count)
    templates.names[:] = rng.permutation(count) + 1
    templates.groups[:] = rng.integers(0, 2, count)
    templates.first[:] = rng.integers(1, keys, count)
    templates.second[:] = rng.integers(1, keys, count)
    templates.second[rng.random(count) < singles] = 0
    templates.scores[:] = rng.integers(0, 3, count)
    templates.sort_keys[:] = rng.integers(0, 3, count)
    return templates


@pytest.mark.parametrize("singles", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize("keys", [2, 30, 1000])
def test_the_best_of_each_key_stays(monkeypatch, singles, keys):
    monkeypatch.setattr(module, "_LEAST", 10)
    rng = np.random.default_rng(keys)
    templates = templates_of(rng, 3000, singles, keys)
    rows, ends = defaultdict(list), set()
    for row, (_, group, first, second, score, key) in enumerate(zip(*templates, strict=True)):
        rows[group, first, second].append((-score, key, row))
        ends |= {(group, first), (group, second)} if second else set()
    expected = np.ones(3000, bool)
    for (group, first, second), same in rows.items():
        if second or (group, first) not in ends:
            expected[min(same)[2]] = False
    for threads in (1, 2, 5):
        assert np.array_equal(find_duplicates(templates, threads), expected)
    # The order of rows with other sort keys is irrelevant.
    order = np.argsort(templates.sort_keys, kind="stable")
    again = find_duplicates(Templates(*(column[order] for column in templates)), 2)
    assert np.array_equal(again, expected[order])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 1000])
def test_the_table_holds_all_names(count):
    names = np.random.default_rng(count).integers(1, 1 << 63, count).astype(np.uint64)
    table = name_table(np.concatenate([names, names]))
    assert sorted(table[table != 0].tolist()) == sorted(names.tolist())
    # Searches end at an empty slot.
    assert (table == 0).any()


def changed(libraries, change) -> tuple:
    """Return the header and the records of a library after ``change(body)`` of its first pair."""
    header, (records,) = read(libraries / "2.bam")
    bodies = [
        records.data[first:stop].tobytes()
        for first, stop in zip(records.starts, records.starts[1:], strict=False)
    ]
    flags = [body[18] + 256 * body[19] for body in bodies]
    # A forward end of a pair, whose reverse mate comes later.
    row = next(row for row, flag in enumerate(flags) if flag in (97, 161))
    body = change(bodies[row])
    body = (len(body) - 4).to_bytes(4, "little") + body[4:]
    bodies[row] = body
    starts = np.cumsum([0] + [len(body) for body in bodies])
    data = np.frombuffer(b"".join(bodies), np.uint8)
    return header, Records(data, starts, records.keys)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.replace(b"MCZ", b"XCZ"), "a pair has no tags MC and ms"),
        (lambda body: body.replace(b"msS", b"XsS"), "a pair has no tags MC and ms"),
        (lambda body: body.replace(b"MCZ", b"MC?"), "a record is damaged"),
        (lambda body: body.replace(b"MCZ", b"MCB"), "a record is damaged"),
        (lambda body: body + b"XXZ" + 20 * b"x", "a record is damaged"),
        (lambda body: body + b"XXBI\xff\xff\xff\xff", "a record is damaged"),
        # The length of the read is negative, and too long.
        (lambda body: body[:20] + b"\xff\xff\xff\xff" + body[24:], "a record is damaged"),
        (lambda body: body[:20] + b"\xff\xff\x00\x00" + body[24:], "a record is damaged"),
    ],
)
def test_damaged_records_are_refused(libraries, change, message):
    header, records = changed(libraries, change)
    with pytest.raises(InputError, match=f"^x.bam: {message}"):
        DuplicateMarker(header, None, 1).add(records, "x.bam")


def test_duplicates_with_the_name_of_others_are_refused(libraries):
    header, (records,) = read(libraries / "1.bam")
    marker = DuplicateMarker(header, None, 1)
    marker.add(records)
    ((_, templates),) = marker._parts
    row = int(np.flatnonzero(find_duplicates(templates))[0])
    templates.names[row] = templates.names[row - 1]
    with pytest.raises(InputError, match="^reads or pairs have the same name and read group, so"):
        marker.find()


def test_estimated_size_of_a_library():
    assert library_size(0, 0) is library_size(100, 100) is None
    # Of a million distinct pairs, so many are expected in as many draws.
    unique = round(1e6 * (1 - np.exp(-1)))
    assert abs(library_size(1_000_000, unique) - 1_000_000) < 10
    assert library_size(10**9, 1) == 1
    assert library_size(10**9, 10**9 - 1) > 10**16


def test_metrics_of_no_reads(libraries):
    header, _ = read(libraries / "1.bam")
    marker = DuplicateMarker(header, None, 1)
    marker.find()
    lines = metrics_text(marker.counts).splitlines()
    assert lines[2:4] == ["a" + 7 * "\t0" + "\t0\t", "b" + 7 * "\t0" + "\t0\t"]
