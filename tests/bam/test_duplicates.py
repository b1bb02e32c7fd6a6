"""Duplicates are those of a slow search over both records of each pair, and those of Picard."""

import errno
import resource
import shutil
import subprocess
from collections import defaultdict

import numpy as np
import pysam
import pytest

from bwarp.bam import duplicates as module
from bwarp.bam import templates as templates_module
from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression_engine import STORED
from bwarp.bam.duplicate_metrics import library_size, metrics_text
from bwarp.bam.duplicate_rules import NO_TILE
from bwarp.bam.duplicates import (
    BEST,
    DUPLICATE,
    OPTICAL,
    DuplicateMarker,
    find_duplicates,
    name_table,
    records_with_room,
    tags_with_room,
)
from bwarp.bam.external_sort import whole_records
from bwarp.bam.header import header_bytes, split_header
from bwarp.bam.records import Records
from bwarp.bam.templates import TEMPLATE_BYTES, Templates, TemplateStore, empty_templates
from bwarp.errors import InputError
from tests.helpers.cases.duplicate_library import located_name, write_library
from tests.helpers.oracles.slow_duplicates import slow_duplicates

#: Shares of copies, and whether names have tile, x and y.
SHARES = {1: (0.05, False), 2: (0.15, False), 3: (0.4, False), 4: (0.15, True), 5: (0.6, True)}
PICARD = shutil.which("PicardCommandLine")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("libraries")
    for seed, (share, located) in SHARES.items():
        named = {"name": located_name} if located else {}
        write_library(folder / f"{seed}.bam", seed, 2000, share, **named)
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
    """Return the flags of records after `DuplicateMarker.mark`."""
    flags = []
    for records in groups:
        data = records.data.copy()
        marker.mark(Records(data, records.starts, records.keys))
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
    expected, optical, _ = slow_duplicates(path, barcode_tag)
    assert len(expected) > 50
    header, groups = read(path, block_bytes)
    marker = DuplicateMarker(header, barcode_tag, None, threads)
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
    assert marker.counts.optical_pairs.sum() == len(optical)
    assert (len(optical) > 10) == SHARES[seed][1]


def test_flags_of_an_earlier_search_are_cleared(libraries):
    header, (records,) = read(libraries / "3.bam")
    marker = DuplicateMarker(header, None, None, 1)
    marker.find()
    data = records.data.copy()
    data[records.starts[:-1] + 19] |= 4
    flags = flags_of(marker, [Records(data, records.starts, records.keys)])
    assert not any(flag & 1024 for flag in flags)
    assert marker.counts.reads == 0


def tagged(path, threads=1, barcode_tag=None, distance=100, changed=None) -> list:
    """Return the records of a file with tags of duplicates; `changed` replaces the records."""
    header, groups = read(path, 30_000)
    marker = DuplicateMarker(header, barcode_tag, distance, threads, with_tags=True)
    groups = [changed] if changed else groups
    for records in groups:
        marker.add(records)
    marker.find()
    out = path.with_suffix(".marked.bam")
    with open(out, "wb") as file, BlockWriter(file, 1, STORED).after(header_bytes(header)) as to:
        for records in groups:
            roomy = records_with_room(records, True)
            marker.mark(roomy)
            to.write(roomy.data, roomy.starts)
    with pysam.AlignmentFile(out) as file:
        return list(file)


def without_tag(record) -> dict:
    return record.to_dict() | {
        "flag": record.flag & ~1024, "tags": [t for t in record.to_dict()["tags"] if t[:2] != "DT"]
    }  # fmt: skip


@pytest.mark.parametrize("barcode_tag", [None, "RX"])
@pytest.mark.parametrize("seed", SHARES)
@pytest.mark.parametrize("threads", [1, 3])
def test_tags_are_those_of_a_slow_search(libraries, seed, barcode_tag, threads, monkeypatch):
    monkeypatch.setattr(module, "_LEAST", 100)
    path = libraries / f"{seed}.bam"
    duplicates, optical, _ = slow_duplicates(path, barcode_tag)
    found = tagged(path, threads, barcode_tag)
    with pysam.AlignmentFile(path) as file:
        assert list(map(without_tag, found)) == list(map(without_tag, file))
    for record in found:
        kind = "SQ" if name_of(record) in optical else "LB"
        is_duplicate = name_of(record) in duplicates and not record.is_unmapped
        assert record.is_duplicate == is_duplicate
        # It is the last tag.
        assert dict(record.tags).get("DT") == (kind if is_duplicate else None)
        assert not is_duplicate or record.tags[-1] == ("DT", kind)


def with_stale_tags(records: Records) -> Records:
    """Add tags DT of several types at the start and end of the tags of records."""
    bodies, rng = [], np.random.default_rng(3)
    for first, stop in zip(records.starts, records.starts[1:], strict=False):
        body = records.data[first:stop].tobytes()
        tags_at = 36 + body[12] + 4 * int.from_bytes(body[16:18], "little")
        length = int.from_bytes(body[20:24], "little")
        tags_at += (length + 1) // 2 + length
        more = rng.choice([b"", b"DTZSQ\0", b"DTZ\0", b"DTi\1\0\0\0", b"DTBC\2\0\0\0DT"], 2)
        # NumPy drops final zeros.
        one, two = (
            {b"DTZSQ": b"DTZSQ\0", b"DTZ": b"DTZ\0", b"DTi\1": b"DTi\1\0\0\0"}.get(
                bytes(tag), bytes(tag)
            )
            for tag in more
        )
        body = body[4:tags_at] + one + body[tags_at:] + two
        bodies.append(len(body).to_bytes(4, "little") + body)
    starts = np.cumsum([0, *map(len, bodies)])
    return Records(np.frombuffer(b"".join(bodies), np.uint8), starts, records.keys)


def test_tags_of_an_earlier_search_are_removed(libraries):
    path = libraries / "5.bam"
    _, (records,) = read(path)
    stale = with_stale_tags(records)
    assert stale.data.size > records.data.size + 1000
    expected = [record.to_string() for record in tagged(path)]
    assert [record.to_string() for record in tagged(path, changed=stale)] == expected
    again = records_with_room(stale, False)
    assert np.array_equal(again.data, records.data)
    assert np.array_equal(again.starts, records.starts)
    assert records_with_room(records, False) is records


def test_room_follows_the_tags_of_each_read():
    tags = np.frombuffer(b"BCZA\0XXAc", np.uint8)
    found, offsets = tags_with_room(tags, np.array([0, 5, 5, 9]))
    assert found.tobytes() == b"BCZA\0DTZLB\0DTZLB\0XXAcDTZLB\0"
    assert offsets.tolist() == [0, 11, 17, 27]


def by_picard(path, folder, barcode_tag, distance=100) -> tuple[list, str]:
    """Return the records that Picard wrote, and its metrics."""
    out, text = folder / "out.bam", folder / "out.txt"
    command = [PICARD, "MarkDuplicates", f"I={path}", f"O={out}", f"M={text}", "QUIET=true"]
    command += ["VALIDATION_STRINGENCY=SILENT", "VERBOSITY=ERROR", "TAGGING_POLICY=All"]
    command += [f"OPTICAL_DUPLICATE_PIXEL_DISTANCE={distance}"]
    command += [f"BARCODE_TAG={barcode_tag}"] if barcode_tag else []
    subprocess.run(command, check=True, capture_output=True)
    with pysam.AlignmentFile(out) as file:
        return list(file), text.read_text()


def by_us(path, barcode_tag, distance=100) -> tuple[list[int], str]:
    header, groups = read(path)
    marker = DuplicateMarker(header, barcode_tag, distance, 2)
    for records in groups:
        marker.add(records)
    marker.find()
    return flags_of(marker, groups), metrics_text(marker.counts)


@pytest.mark.skipif(PICARD is None, reason="needs Picard (apt-get install picard-tools)")
@pytest.mark.parametrize(("seed", "distance"), [*((seed, 100) for seed in SHARES), (5, 30)])
@pytest.mark.parametrize("barcode_tag", [None, "RX"])
def test_flags_and_counts_are_those_of_picard(libraries, tmp_path, seed, barcode_tag, distance):
    path = libraries / f"{seed}.bam"
    records, metrics = by_picard(path, tmp_path, barcode_tag, distance)
    found, ours = by_us(path, barcode_tag, distance)
    # Picard does not flag secondary and supplementary records of a sorted file.
    differing = [
        record.query_name
        for record, flag in zip(records, found, strict=True)
        if not flag & (256 | 2048) and record.flag != flag
    ]
    assert not differing
    assert table_of(ours) == table_of(metrics)
    # The slow search finds the same optical duplicates.
    theirs = {name_of(r) for r in records if ("DT", "SQ") in r.tags}
    assert theirs == slow_duplicates(path, barcode_tag, distance).optical
    kinds = [
        [dict(record.tags).get("DT") for record in some if not record.flag & (256 | 2048)]
        for some in (records, tagged(path, 2, barcode_tag, distance))
    ]
    assert kinds[0] == kinds[1]
    assert {None, "LB"} <= set(kinds[0])


def table_of(metrics: str) -> list[str]:
    """Return the lines of the table of libraries, of which Picard's are in arbitrary order."""
    lines = metrics.partition("## METRICS CLASS")[2].split("\n\n")[0].splitlines()
    return sorted(lines)


def templates_of(rng, count: int, singles: float, keys: int) -> Templates:
    templates = empty_templates(count)
    templates.names[:] = np.arange(count) + 1
    templates.groups[:] = rng.integers(0, 2, count)
    templates.first[:] = rng.integers(1, keys, count)
    templates.second[:] = rng.integers(1, keys, count)
    templates.second[rng.random(count) < singles] = 0
    templates.scores[:] = rng.integers(0, 3, count)
    templates.positions[:] = rng.integers(0, 3, count)
    # Tiles without and with a location, of two read groups and orientations.
    tiles = rng.choice([NO_TILE, NO_TILE + 1], count)
    sensors = rng.integers(0, 4, count)
    x, y = rng.integers(0, 40, (2, count))
    templates.locations[:] = sensors << 48 | tiles << 32 | x << 16 | y
    return templates


@pytest.mark.parametrize("distance", [0, 3, 40])
@pytest.mark.parametrize("singles", [0, 0.02, 0.5, 1])
@pytest.mark.parametrize("keys", [2, 30, 1000])
def test_the_best_of_each_key_stays(monkeypatch, singles, keys, distance):
    monkeypatch.setattr(module, "_LEAST", 10)
    rng = np.random.default_rng(keys)
    templates = templates_of(rng, 3000, singles, keys)
    rows, ends = defaultdict(list), set()
    for row, (_, group, first, second, score, positions, location) in enumerate(
        zip(*map(np.ndarray.tolist, templates), strict=True)
    ):
        order = -score, location & (1 << 48) - 1, positions, row
        rows[group, first, second].append((order, location))
        ends |= {(group, first), (group, second)} if second else set()
    expected = np.full(3000, DUPLICATE, np.uint8)
    for (group, first, second), same in rows.items():
        best = min(same)[0][-1]
        if second or (group, first) not in ends:
            expected[best] = BEST
        if second:
            expected[optical_rows(same, best, distance)] = OPTICAL
    for threads in (1, 2, 5):
        assert np.array_equal(kinds_of(store_of(templates, threads), distance, threads), expected)
    # The order of rows of other positions is irrelevant.
    order = np.argsort(templates.positions, kind="stable")
    again = kinds_of(store_of(rows_of(templates, order), 2), distance, 2)
    assert np.array_equal(again, expected)


def rows_of(templates, rows) -> Templates:
    return Templates(*(column[rows] for column in templates))


def store_of(templates, threads, parts=3, **more) -> TemplateStore:
    """Return a store of templates in parts, which are from files 0, 1, 0, 1, ..."""
    store = TemplateStore(threads, **more)
    for number, rows in enumerate(np.array_split(np.arange(templates.names.size), parts)):
        store.add(rows_of(templates, rows), number % 2)
    return store


def kinds_of(store, distance=0, threads=1, files=None) -> np.ndarray:
    """Return what each template is, in the order of their names."""
    tables = list(find_duplicates(store, distance, threads, files))
    names = np.concatenate([templates.names for templates, _ in tables])
    return np.concatenate([kinds for _, kinds in tables])[np.argsort(names)]


def test_a_full_disk_is_an_error(tmp_path):
    templates = templates_of(np.random.default_rng(1), 3000, 0.5, 30)
    store = store_of(templates, 2, 1, folder=tmp_path, most_bytes=0)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    sizes = {path: path.stat().st_size for path in tmp_path.iterdir()}
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes.values()), hard))
    try:
        with pytest.raises(OSError, match="File too large") as error:
            store.add(templates, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert error.value.errno == errno.EFBIG


@pytest.mark.parametrize("singles", [0, 0.5, 1])
@pytest.mark.parametrize(("parts", "rows"), [(1, 0), (7, 0), (7, 1000), (7, 2999), (7, 3000)])
def test_templates_on_disk(tmp_path, monkeypatch, singles, parts, rows):
    monkeypatch.setattr(templates_module, "_ROWS_A_WRITE", 500)
    templates = templates_of(np.random.default_rng(parts), 3000, singles, 30)
    in_memory = store_of(templates, 2, parts)
    store = store_of(templates, 2, parts, folder=tmp_path, most_bytes=rows * TEMPLATE_BYTES)
    assert any(tmp_path.iterdir()) == (rows < 3000)
    assert (store.singles, store.pairs) == (in_memory.singles, in_memory.pairs)
    for files in ({0}, {1}, {0, 1}, {2}, None):
        expected = kinds_of(in_memory, 3, 1, files)
        assert np.array_equal(kinds_of(store, 3, 2, files), expected)
    assert expected.size == 3000
    store.clear()
    assert not any(tmp_path.iterdir())


def test_a_marker_with_templates_on_disk(libraries, tmp_path):
    header, (records,) = read(libraries / "5.bam")
    in_memory = DuplicateMarker(header, None, None, 2)
    on_disk = DuplicateMarker(header, None, None, 2, tmp_path, 400_000)
    for marker in (in_memory, on_disk):
        for file in (0, 1):
            rows = slice(0, 2000) if file == 0 else slice(2000, None)
            starts = records.starts[rows.start : rows.stop + 1 if rows.stop else None]
            marker.add(Records(records.data, starts, records.keys[rows]), "x.bam", file)
    assert any(tmp_path.iterdir())
    assert on_disk.count_in([0]) == in_memory.count_in([0]) > 0
    for marker in (in_memory, on_disk):
        marker.find()
    assert all(
        np.array_equal(np.sort(found), np.sort(expected))
        for found, expected in zip(on_disk.marks[:2], in_memory.marks[:2], strict=True)
    )
    for found, expected in zip(on_disk.counts, in_memory.counts, strict=True):
        assert np.array_equal(found, expected)
    assert not any(tmp_path.iterdir())


def optical_rows(same, best, distance) -> list[int]:
    """Return the rows of optical duplicates by flooding each cluster from its first pair."""
    found, left = [], sorted((location, order[1:]) for order, location in same)
    if not distance:
        return []
    while left:
        cluster, new = [], [left.pop(0)]
        while new:
            cluster += new
            new = [item for item in left if any(near(item, other, distance) for other in cluster)]
            left = [item for item in left if item not in new]
        numbers = [row for _, (*_, row) in sorted(cluster)]
        numbers.remove(best if best in numbers else numbers[0])
        found += numbers
    return found


def near(one, other, distance) -> bool:
    one, other = one[0], other[0]
    return (
        one >> 32 == other >> 32
        and one >> 32 & 0xFFFF != NO_TILE
        and abs((one >> 16 & 0xFFFF) - (other >> 16 & 0xFFFF)) <= distance
        and abs((one & 0xFFFF) - (other & 0xFFFF)) <= distance
    )


@pytest.mark.parametrize("many", [300_000, 300_001])
def test_large_sets_have_no_optical_duplicates(many):
    templates = templates_of(np.random.default_rng(1), many + 2, 0, 2)
    templates.groups[:] = 0
    # Two pairs of the other orientation at one position.
    spots = np.arange(many, dtype=np.uint64) // np.uint64(2)
    templates.locations[:many] = spots % np.uint64(60_000) << np.uint64(32)
    templates.locations[many:] = np.uint64(1 << 48)
    optical = kinds_of(store_of(templates, 1), 100) == OPTICAL
    assert optical[many:].sum() == 1
    assert (optical[:many].sum() > 1000) == (many == 300_000)


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
        DuplicateMarker(header, None, None, 1).add(records, "x.bam")
    if "damaged" in message:
        with pytest.raises(InputError, match=f"^x.bam: {message}"):
            records_with_room(records, True, "x.bam")


def test_duplicates_with_the_name_of_others_are_refused(libraries):
    header, (records,) = read(libraries / "1.bam")
    marker = DuplicateMarker(header, None, None, 1)
    marker.add(records)
    ((templates, kinds),) = find_duplicates(marker._store)
    row = int(np.flatnonzero(kinds)[0])
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
    marker = DuplicateMarker(header, None, None, 1)
    marker.find()
    lines = metrics_text(marker.counts).splitlines()
    assert lines[2:4] == ["a" + 7 * "\t0" + "\t0\t", "b" + 7 * "\t0" + "\t0\t"]
