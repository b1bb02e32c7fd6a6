"""A sorted BAM file with duplicates of every kind."""

import random
from collections.abc import Callable

import numpy as np
import pysam

from tests.helpers.oracles.slow_duplicates import score

HEADER = {
    "HD": {"VN": "1.6", "SO": "coordinate"},
    "SQ": [{"SN": "one", "LN": 20_000}, {"SN": "two", "LN": 3_000}],
    "RG": [
        {"ID": "lane1", "SM": "s", "LB": "a"},
        {"ID": "lane2", "SM": "s", "LB": "a"},
        {"ID": "lane3", "SM": "s", "LB": "b"},
        {"ID": "lane4", "SM": "s"},
    ],
}
READ = 40


#: Shares of pairs, pairs with an unmapped mate, single reads and unmapped pairs.
KINDS = (0.7, 0.15, 0.1, 0.05)


def write_library(
    path, seed: int, count: int, share: float, kinds: tuple = KINDS, name: Callable = "r{}".format
) -> None:
    """Write templates, of which a share are copies of others; `name` returns the name of each."""
    rng = np.random.default_rng(seed)
    header = pysam.AlignmentHeader.from_dict(HEADER)
    templates, records = [], []
    for number in range(count):
        if templates and rng.random() < share:
            ends, kind, group, code = templates[rng.integers(len(templates))]
            # Some copies lose their mate, are from another lane, or have another barcode.
            kind = 1 if kind == 0 and rng.random() < 0.1 else kind
            group = rng.integers(5) if rng.random() < 0.2 else group
            code = rng.integers(4) if rng.random() < 0.1 else code
        else:
            ends = _random_ends(rng)
            kind = rng.choice(4, p=kinds)
            group, code = rng.integers(5), rng.integers(4)
            templates.append((ends, kind, group, code))
        records += _records(rng, header, name(number), ends, kind, group, code)
    # As an aligner writes them, before they are sorted; equal positions stay in this order.
    unsorted = f"{path}.unsorted"
    with pysam.AlignmentFile(unsorted, "wb", header=header) as file:
        for record in records:
            file.write(record)
    pysam.sort("--no-PG", "-o", str(path), unsorted)


def located_name(number: int) -> str:
    """Return a name with tile, x and y, near those of others, or with none that count."""
    rng = random.Random(number)
    if rng.random() < 0.1:
        return rng.choice(_WITHOUT_LOCATION).format(number)
    usual = rng.random() < 0.8
    tile = "1101" if usual else rng.choice(_TILES)
    x, y = (str(rng.randrange(400)) if usual else rng.choice(_COORDINATES) for _ in range(2))
    return rng.choice(_WITH_LOCATION).format(number, tile, x, y)


_WITH_LOCATION = ("A{}:1:FC:1:{}:{}:{}", "A{}:1:{}:{}:{}", ":A{}:1:{}:{}:{}", "A{}:1:{}:{}:{}/#0")
_WITHOUT_LOCATION = (
    "r{}", "a:{}:5:5", "a:{}:5:5:5:5", "a:{}:1:2:3:4:5:6", "a:{}:::", "a:{}:1:2:", "a:{}:1:x:5",
    "a:{}:-:5:5", "a:{}::5:5", ":{}:1:2:3", "{}:::::::", "a:{}:+1:2:3", "a:{}:--1:2:3",
)  # fmt: skip
#: A tile of -1 is none, and numbers have 16 bits.
_TILES = ("7", "1101", "65542", "-2", "-1", "65535", "007")
_COORDINATES = (
    "65540", "65600", "32760", "32770", "-30", "-0", "12x", "4294967300",
    "123456789012345678901234567890",
)  # fmt: skip


def _random_ends(rng):
    """Return contig, unclipped 5' position and strand of both ends."""
    contig = int(rng.random() < 0.2)
    length = HEADER["SQ"][contig]["LN"]
    start = int(rng.integers(-5, length - 400))
    ends = [(contig, start, False), (contig, start + int(rng.integers(60, 300)), True)]
    kind = rng.random()
    if kind < 0.05:
        ends[1] = (1, int(rng.integers(100, 2900)), bool(rng.random() < 0.5))
    elif kind < 0.1:
        ends[1] = (*ends[1][:2], False)
    elif kind < 0.13:
        # Both ends at one position.
        ends[0] = (contig, max(start, 100), False)
        ends[1] = (contig, max(start, 100), True)
    return ends if rng.random() < 0.5 else ends[::-1]


def _records(rng, header, name, ends, kind, group, code):
    mapped = {0: (True, True), 1: (True, False), 2: (True,), 3: (False, False)}[int(kind)]
    records = []
    for number, is_mapped in enumerate(mapped):
        record = pysam.AlignedSegment(header)
        record.query_name = name
        record.query_sequence = "A" * READ
        # Few different values, so that scores tie.
        record.query_qualities = rng.choice([2, 14, 15, 30], READ) if rng.random() < 0.98 else None
        record.is_unmapped = not is_mapped
        if is_mapped:
            _place(rng, record, *ends[number])
        if len(mapped) == 2:
            record.is_paired = True
            record.is_read1, record.is_read2 = number == 0, number == 1
        if group < 4:
            record.set_tag("RG", f"lane{group + 1}")
        if code < 3:
            record.set_tag("RX", ["ACA", "CAC", "TTT"][int(code)])
        records.append(record)
    if len(mapped) == 2:
        for record, mate in (records, records[::-1]):
            _set_mate(record, mate)
    more = []
    for record in records:
        if not record.is_unmapped and rng.random() < 0.1:
            other = pysam.AlignedSegment.from_dict(record.to_dict(), header)
            other.is_supplementary = rng.random() < 0.5
            other.is_secondary = not other.is_supplementary
            other.reference_start = int(rng.integers(2000))
            other.reference_id = int(rng.integers(2))
            more.append(other)
    return records + more


def _place(rng, record, contig, five, reverse):
    """Align a read whose unclipped 5' end is given, with clips, an insertion or a deletion."""
    kind = int(rng.integers(5))
    clip = int(rng.integers(1, 10)) if kind in (1, 2) else 0
    if not reverse:
        # A read may not begin before its contig.
        clip = max(clip, -five)
    cigar = [(5 if kind == 2 else 4, clip)] if clip else []
    aligned = READ - (clip if kind != 2 else 0)
    if clip and kind == 2:
        record.query_sequence = "A" * READ
    if kind == 3:
        cigar += [(0, 10), (2, 3), (0, aligned - 10)]
    elif kind == 4:
        cigar += [(0, 10), (1, 3), (0, aligned - 13)]
    else:
        cigar += [(0, aligned - 2), (4, 2)]
    if reverse:
        cigar = cigar[::-1]
    record.cigartuples = cigar
    record.reference_id = contig
    record.is_reverse = reverse
    span = sum(length for operation, length in cigar if operation in (0, 2))
    record.reference_start = five - clip - span + 1 if reverse else five + clip


def _set_mate(record, mate):
    record.mate_is_unmapped = mate.is_unmapped
    record.mate_is_reverse = mate.is_reverse
    if record.is_unmapped and not mate.is_unmapped:
        record.reference_id, record.reference_start = mate.reference_id, mate.reference_start
    place = record if mate.is_unmapped else mate
    record.next_reference_id = place.reference_id
    record.next_reference_start = place.reference_start
    if not mate.is_unmapped:
        record.set_tag("MC", mate.cigarstring)
    record.set_tag("ms", score(mate))
