"""Duplicates of a sorted BAM file by Picard's rules, from both records of each pair."""

from collections import defaultdict

import pysam


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


def slow_duplicates(path, barcode_tag=None) -> tuple[set, dict]:
    """Return the names of duplicate templates, with their read groups, and each one's score."""
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
        ends = sorted(end_of(record) for _, record in records)
        scores[name] = sum(score(record) for _, record in records)
        chosen = pairs if len(ends) == 2 else singles
        chosen[group, *ends].append((-scores[name], records[0][0], name))
        if len(ends) == 2:
            pair_ends |= {(group, end) for end in ends}
    duplicates = set()
    for key, rows in (pairs | singles).items():
        first = 0 if len(key) == 2 and key in pair_ends else 1
        duplicates |= {name for *_, name in sorted(rows)[first:]}
    return duplicates, scores
