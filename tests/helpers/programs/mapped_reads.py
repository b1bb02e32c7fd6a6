"""The output of scripts/map_reads.py, and properties of all records."""

from collections import Counter

import pysam

from bwarp.simulation.reads import parse_read_name

SCRIPT = "map_reads.py"


def records(path):
    with pysam.AlignmentFile(path) as file:
        return list(file)


def outcome(path) -> Counter:
    """Count correct, incorrect, random and mapped reads, with a quality below 10 or not."""
    counts = Counter()
    for record in records(path):
        truth = parse_read_name(record.query_name)
        if truth.contig is None:
            counts["random", not record.is_unmapped and record.mapping_quality >= 10] += 1
            continue
        end = truth.ends[record.is_read2]
        correct = (
            not record.is_unmapped
            and record.reference_name == truth.contig
            and record.is_reverse == end.reverse
            and abs(record.reference_start - record.query_alignment_start - end.start) <= 20
        )
        counts["correct" if correct else "incorrect", record.mapping_quality >= 10] += 1
    return counts


def contigs_of(path) -> dict[str, str]:
    with pysam.FastxFile(str(path)) as file:
        return {record.name: record.sequence.upper() for record in file}


def check_record(record, contigs):
    """Check that CIGAR, NM and MD agree with the bases, and the score with the CIGAR."""
    assert record.query_length == len(record.query_qualities or record.query_sequence)
    if record.is_unmapped:
        assert (record.mapping_quality, record.cigarstring) == (0, None)
        return
    assert record.infer_read_length() == record.query_length
    letters, contig = record.query_sequence, contigs[record.reference_name]
    edits = score = 0
    read, at, run, md = 0, record.reference_start, 0, ""
    for number, (operation, length) in enumerate(record.cigartuples):
        if operation == 4:
            assert number in (0, len(record.cigartuples) - 1)
            read += length
        elif operation == 0:
            for base, other in zip(letters[read : read + length], contig[at:], strict=False):
                if base == other != "N":
                    run, score = run + 1, score + 1
                else:
                    md, run, edits, score = f"{md}{run}{other}", 0, edits + 1, score - 4
            read, at = read + length, at + length
        else:
            # Beyond 20 bases a gap costs no more.
            edits, score = edits + length, score - 6 - min(length, 20)
            if operation == 1:
                read += length
            else:
                md, run = f"{md}{run}^{contig[at : at + length]}", 0
                at += length
    assert (read, at) == (len(letters), record.reference_end)
    assert record.get_tag("NM") == edits
    assert record.get_tag("MD") == f"{md}{run}"
    assert record.get_tag("AS") == score >= 30
    if record.get_tag("XS") >= score:
        assert record.mapping_quality <= 40
    assert record.reference_end <= len(contig)


def check_mates(one, two):
    assert one.query_name == two.query_name
    assert (one.is_read1, two.is_read2) == (True, True)
    for record, mate in ((one, two), (two, one)):
        assert record.is_paired
        assert record.mate_is_unmapped == mate.is_unmapped
        assert record.mate_is_reverse == mate.is_reverse
        assert record.is_proper_pair == mate.is_proper_pair
        assert (record.next_reference_id, record.next_reference_start) == (
            mate.reference_id, mate.reference_start,
        )  # fmt: skip
        assert record.has_tag("MC") == record.has_tag("MQ") == (not mate.is_unmapped)
        if not mate.is_unmapped:
            assert record.get_tag("MC") == mate.cigarstring
            assert record.get_tag("MQ") == mate.mapping_quality
    assert one.template_length + two.template_length == 0
    both = not one.is_unmapped and not two.is_unmapped
    if both and one.reference_id == two.reference_id and one.is_reverse != two.is_reverse:
        left, right = (two, one) if one.is_reverse else (one, two)
        size = right.reference_end - left.reference_start
        assert left.template_length == size + (0 if size > 0 else -2)
    if one.is_proper_pair:
        assert both
        assert one.is_reverse != two.is_reverse
