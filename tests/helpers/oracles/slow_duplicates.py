"""Duplicates of a sorted BAM file by Picard's rules, from both records of each pair."""

import re
from collections import defaultdict
from itertools import combinations
from typing import NamedTuple

import pysam

#: Tile, x and y of names without them.
NO_LOCATION = (-1, -1, -1)


class SlowDuplicates(NamedTuple):
    """Names of duplicate templates with their read groups, of optical ones, and all scores."""

    names: set
    optical: set
    scores: dict


def score(record) -> int:
    return sum(quality for quality in record.query_qualities or () if quality >= 15)


def end_of(record) -> tuple:
    """Return contig, unclipped 5' position and strand."""
    cigar = record.cigartuples
    before = sum(length for operation, length in cigar[:1] if operation in (4, 5))
    after = sum(length for operation, length in cigar[1:][-1:] if operation in (4, 5))
    if record.is_reverse:
        return record.reference_id, record.reference_end - 1 + after, True
    return record.reference_id, record.reference_start - before, False


def location_of(name: str) -> tuple:
    """Return tile, x and y as 16-bit numbers."""
    fields = name[1:].split(":")
    found = [re.match(r"-?[0-9]+", field) for field in fields[-3:]]
    if len(fields) not in (5, 7) or None in found:
        return NO_LOCATION
    return tuple((int(number[0]) + 32768) % 65536 - 32768 for number in found)


def slow_duplicates(path, barcode_tag=None, distance=100) -> SlowDuplicates:
    templates = defaultdict(list)
    with pysam.AlignmentFile(path, check_sq=False) as file:
        library_of = {group["ID"]: group.get("LB") for group in file.header.to_dict().get("RG", [])}
        for number, record in enumerate(file):
            if not (record.is_unmapped or record.is_secondary or record.is_supplementary):
                name = record.query_name, dict(record.tags).get("RG")
                templates[name].append((number, record))
    pairs, singles, pair_ends = defaultdict(list), defaultdict(list), set()
    scores = {}
    for name, records in templates.items():
        tags = dict(records[0][1].tags)
        group = library_of.get(name[1]), tags.get(barcode_tag)
        # By position, and then by the order in the file.
        records.sort(key=lambda item: end_of(item[1])[:2])
        numbers = [number for number, _ in records]
        ends = sorted(end_of(record) for _, record in records)
        scores[name] = sum(score(record) for _, record in records)
        chosen = pairs if len(ends) == 2 else singles
        chosen[group, *ends].append((-scores[name], location_of(name[0]), numbers, name))
        if len(ends) == 2:
            pair_ends |= {(group, end) for end in ends}
    duplicates, optical = set(), set()
    for key, rows in (pairs | singles).items():
        first = 0 if len(key) == 2 and key in pair_ends else 1
        rows.sort()
        duplicates |= {name for *_, name in rows[first:]}
        if key in pairs and distance:
            optical |= _optical(rows, templates, distance)
    return SlowDuplicates(duplicates, optical, scores)


def _optical(rows, templates, distance) -> set:
    """Return the names of optical duplicates among pairs with the same ends, the best one first."""
    best = rows[0][-1]
    by_sensor = defaultdict(list)
    for _, (tile, x, y), numbers, name in rows:
        if tile != -1:
            first = next(record for _, record in templates[name] if record.is_read1)
            second = next(record for _, record in templates[name] if record.is_read2)
            strands = first.is_reverse, second.is_reverse
            by_sensor[name[1], tile, strands == (True, False)].append((x, y, numbers, name))
    optical = set()
    for same in by_sensor.values():
        same.sort()
        clusters = [{name} for *_, name in same]
        for (x, y, _, one), (its_x, its_y, _, other) in combinations(same, 2):
            if abs(x - its_x) <= distance and abs(y - its_y) <= distance:
                merged = [cluster for cluster in clusters if cluster & {one, other}]
                clusters = [cluster for cluster in clusters if not cluster & {one, other}]
                clusters.append(set().union(*merged))
        order = [name for *_, name in same]
        for cluster in clusters:
            optical |= cluster - {best if best in cluster else min(cluster, key=order.index)}
    return optical
