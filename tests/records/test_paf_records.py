"""Lines of PAF against a slow writer, on random alignments of random reads."""

from fractions import Fraction

import numpy as np
import pytest

from bwarp.bam.fields import REVERSE, SECONDARY, UNMAPPED
from bwarp.records.alignment_records import ReadArrays, mapped_tables
from bwarp.records.paf_records import paf_lines
from bwarp.records.record_layout import alignment_records
from bwarp.records.record_text import with_mismatches
from bwarp.sequence import decode
from tests.helpers.cases.random_alignment_records import (
    CONTIGS,
    random_chunk,
    random_genome,
    random_mapped,
)
from tests.helpers.oracles.mapping_oracle import codes_in


def lines_by_the_oracle(genome, chunk, both, records):
    letters = decode(codes_in(genome)).decode()
    for row in range(records.n_rows):
        read, flag = int(records.reads[row]), int(records.flags[row])
        if flag & UNMAPPED:
            continue
        half = both.size // 2 if flag & REVERSE else 0
        begin, end = chunk.offsets[read : read + 2] + half
        bases, at = "".join("ACGTN"[code] for code in both[begin:end]), 0
        first = position = int(records.positions[row])
        cigar, clips = "", [0, 0]
        same = differ = ambiguous = gaps = gap_bases = 0
        for value in records.cigar[slice(*records.cigar_offsets[row : row + 2])].tolist():
            n, operation = value >> 4, "MIDNSHP=X"[value & 15]
            if operation in "SH":
                clips[at > 0] = n
                at += n
                continue
            cigar += f"{n}{operation}"
            here = bases[at : at + n] if operation != "D" else ""
            there = letters[position : position + n] if operation != "I" else ""
            if here and there:
                pairs = list(zip(here, there, strict=True))
                ambiguous += sum("N" in pair for pair in pairs)
                same += sum(one == two != "N" for one, two in pairs)
                differ += sum(one != two for one, two in pairs if "N" not in (one, two))
            else:
                gaps, gap_bases = gaps + 1, gap_bases + n
                ambiguous += (here + there).count("N")
                differ += n - (here + there).count("N")
            at, position = at + len(here), position + len(there)
        left, right = reversed(clips) if flag & REVERSE else clips
        events = same + differ + ambiguous - gap_bases + gaps
        share = Fraction(events - same, events)
        text = str(share) if share in (0, 1) else f"0.{int(share * 10_000 + Fraction(1, 2)):04}"
        contig = int(records.contigs[row])
        start, length = genome.contig_starts[contig], list(CONTIGS.values())[contig]
        yield "\t".join(map(str, [
            chunk.name(read // chunk.ends), len(bases), left, len(bases) - right,
            "-" if flag & REVERSE else "+", list(CONTIGS)[contig], length, first - start,
            position - start, same, same + differ, records.mapping_qualities[row],
            f"NM:i:{differ + ambiguous}", f"AS:i:{records.scores[row]}", f"nn:i:{ambiguous}",
            f"tp:A:{'S' if flag & SECONDARY else 'P'}",
            f"de:f:{text.replace('0.10000', '1.0000')}", f"cg:Z:{cigar}",
        ]))  # fmt: skip


@pytest.mark.parametrize("ends", [1, 2])
@pytest.mark.parametrize("eqx", [False, True])
def test_lines_are_those_of_the_oracle(ends, eqx):
    rng = np.random.default_rng(20 * ends + eqx)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 150, ends)
    both, mapped = random_mapped(rng, genome, chunk)
    records = alignment_records(genome.contig_starts, chunk, mapped)
    if eqx:
        records = with_mismatches(records, genome, chunk.offsets, both)
    expected = list(lines_by_the_oracle(genome, chunk, both, records))
    found = paf_lines(mapped_tables(genome, names, ReadArrays.of(chunk, both), records))
    assert found.data.tobytes().decode().splitlines() == expected
    assert np.array_equal(np.diff(found.starts) > 0, records.flags & UNMAPPED == 0)
    assert chunk.n_reads / 2 < len(expected) < records.n_rows
    assert len({line.split("\t")[15] for line in expected}) == 2


def test_comments_end_the_lines():
    rng = np.random.default_rng(3)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 40, 2)
    both, mapped = random_mapped(rng, genome, chunk)
    records = alignment_records(genome.contig_starts, chunk, mapped)
    comments = [b"" if read % 3 else b"BC:Z:%d\tRX:Z:ACGT" % read for read in range(80)]
    offsets = np.cumsum([0] + [len(comment) for comment in comments])
    further = np.frombuffer(b"".join(comments), np.uint8), offsets
    reads = ReadArrays.of(chunk, both)
    plain, found = (
        paf_lines(mapped_tables(genome, names, reads, records, further=tags))
        .data.tobytes()
        .splitlines()
        for tags in (None, further)
    )
    reads = records.reads[records.flags & UNMAPPED == 0]
    assert found == [
        line + (b"\t" + comments[read] if comments[read] else b"")
        for line, read in zip(plain, reads, strict=True)
    ]
