"""SAM lines against a slow writer of text, on random alignments of random reads."""

import re

import numpy as np
import pytest

from bwarp.records.alignment_records import ReadArrays, mapped_tables
from bwarp.records.bam_records_cpu import sam_records
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


class Oracle:
    """Lines from lists of Python objects, one rule of SAM after the other."""

    def __init__(
        self, genome, chunk, both, mapped, primary, supplementary, secondary, better_scores,
        recorded, soft_clip=False, match="M",
    ):  # fmt: skip
        self.match = match
        self.genome, self.chunk, self.both, self.primary = genome, chunk, both, primary
        self.genome_letters = decode(codes_in(genome)).decode()
        self.first = [self.alignment(mapped, read, read) for read in range(chunk.n_reads)]
        for read, alignment in enumerate(self.first):
            alignment |= {"mapq": primary.qualities[read], "XS": primary.suboptimal[read]}
            alignment |= {"better": better_scores[read], "soft": True, "secondary": []}
        self.more = {read: [] for read in range(chunk.n_reads)}
        for row, read in enumerate(supplementary.reads):
            self.more[read].append(
                self.alignment(supplementary.alignments, row, read)
                | {"mapq": supplementary.qualities[row], "XS": supplementary.suboptimal[row]}
                | {"better": 0, "soft": supplementary.soft[row] or soft_clip, "secondary": []}
            )
        further = [line for lines in self.more.values() for line in lines]
        for row, read in enumerate(secondary.reads):
            by = secondary.named_by[row]
            line = self.first[read] if by < 0 else further[by]
            line["secondary"].append(self.alignment(secondary.alignments, row, read))
        self.recorded = {read: [] for read in range(chunk.n_reads)}
        for row, read in enumerate(recorded.reads):
            self.recorded[read].append(
                self.alignment(recorded.alignments, row, read)
                | {"mapq": 0, "recorded": True, "soft": soft_clip, "secondary": [], "better": 0}
            )

    def alignment(self, alignments, row, read):
        place = int(alignments.positions[row])
        if place < 0:
            return {"mapped": False, "place": ("*", -1), "reverse": False}
        starts = self.genome.contig_starts
        contig = max(i for i in range(len(CONTIGS)) if starts[i] <= place < starts[i + 1])
        strand = int(alignments.strands[row])
        begin, end = self.chunk.offsets[read : read + 2] + strand * (self.both.size // 2)
        bases = "".join("ACGTN"[code] for code in self.both[begin:end])
        at, cigar, edits, md, run, length = alignments.read_starts[row], "", 0, "", 0, 0
        for value in alignments.cigar[slice(*alignments.cigar_offsets[row : row + 2])].tolist():
            n, operation = value >> 4, "MID"[value & 15]
            cigar += "" if operation == "M" != self.match else f"{n}{operation}"
            there = self.genome_letters[place + length :][:n]
            edits += n if operation != "M" else 0
            if operation == "D":
                md, run = f"{md}{run}^{there}", 0
            if operation == "M":
                for one, two in zip(bases[at : at + n], there, strict=True):
                    same = one == two and one != "N"
                    md, run = (md, run + 1) if same else (f"{md}{run}{two}", 0)
                    edits += not same
                if self.match != "M":
                    signs = "".join(
                        "=" if one == two != "N" else "X"
                        for one, two in zip(bases[at : at + n], there, strict=True)
                    )
                    cigar += "".join(f"{len(m[0])}{m[1]}" for m in re.finditer(r"(.)\1*", signs))
            at += n * (operation != "D")
            length += n * (operation != "I")
        left = int(alignments.read_starts[row])
        right = len(bases) - int(alignments.read_ends[row])
        return {
            "mapped": True,
            "place": (list(CONTIGS)[contig], place - int(starts[contig])),
            "reverse": strand == 1,
            "cigar": "".join([f"{left}S" * (left > 0), cigar, f"{right}S" * (right > 0)]),
            "clips": (left, right),
            "bases": bases,
            "NM": edits,
            "MD": f"{md}{run}",
            "AS": alignments.scores[row],
            "span": length,
        }

    def lines(self):
        chunk = self.chunk
        for read, first in enumerate(self.first):
            alone = chunk.ends == 1 or (chunk.orphans is not None and chunk.orphans[read // 2])
            if chunk.ends == 2 and alone and read % 2:
                continue
            mate = None if alone else self.first[read ^ 1]
            name = chunk.name(read // chunk.ends)
            begin, end = chunk.offsets[read : read + 2]
            qualities = "" if chunk.qualities is None else chunk.qualities[begin:end].tobytes()
            qualities = qualities and qualities.decode()
            together = [first, *self.more[read]]
            for number, line in enumerate([*together, *self.recorded[read]]):
                secondary = "recorded" in line
                flag = 4 * (not line["mapped"]) + 16 * line["reverse"] + 256 * secondary
                flag += 2048 * (number > 0 and not secondary)
                place, size, there = line["place"], 0, ("*", -1)
                if mate is not None:
                    flag += 1 + (128 if read % 2 else 64) + 2 * bool(self.primary.proper[read])
                    flag += 8 * (not mate["mapped"]) + 32 * mate["reverse"]
                    place = place if line["mapped"] else mate["place"]
                    there = mate["place"] if mate["mapped"] else first["place"]
                    if line["mapped"] and mate["mapped"] and place[0] == there[0]:
                        here, far = (
                            x["place"][1] + (x["span"] - 1) * x["reverse"] for x in (line, mate)
                        )
                        size = far - here + (far > here) - (far < here)
                    there = ("=" if there[0] == place[0] != "*" else there[0], there[1])
                bases = line["bases"] if line["mapped"] else self.letters(begin, end)
                turned = qualities[::-1] if line["reverse"] else qualities
                cigar = line.get("cigar", "*")
                if not line["soft"]:
                    cut = slice(line["clips"][0], len(bases) - line["clips"][1])
                    bases, turned, cigar = bases[cut], turned[cut], cigar.replace("S", "H")
                if secondary:
                    bases = turned = ""
                fields = [name, flag, place[0], place[1] + 1, line["mapq"] * line["mapped"], cigar]
                fields += [there[0], there[1] + 1, size, bases or "*", turned or "*"]
                if line["mapped"]:
                    fields += [f"NM:i:{line['NM']}", f"MD:Z:{line['MD']}"]
                if mate is not None and mate["mapped"]:
                    fields += [f"MC:Z:{mate['cigar']}", f"MQ:i:{mate['mapq']}"]
                if line["mapped"]:
                    fields += [f"AS:i:{line['AS']}"]
                    if not secondary:
                        fields += [f"XS:i:{line['XS']}"]
                fields += ["RG:Z:a group"]
                if len(together) > 1 and not secondary:
                    fields.append("SA:Z:" + "".join(map(self.split, self.without(together, line))))
                if line["better"]:
                    fields.append(f"pa:f:{round(line['AS'] / line['better'], 3)}")
                if line["secondary"]:
                    fields.append("XA:Z:" + "".join(map(self.alternative, line["secondary"])))
                yield "\t".join(map(str, fields))

    def letters(self, begin, end):
        return "".join("ACGTN"[code] for code in self.both[begin:end])

    @staticmethod
    def without(lines, line):
        return [other for other in lines if other is not line]

    @staticmethod
    def split(line):
        contig, place = line["place"]
        sign = "-" if line["reverse"] else "+"
        return f"{contig},{place + 1},{sign},{line['cigar']},{line['mapq']},{line['NM']};"

    @staticmethod
    def alternative(line):
        contig, place = line["place"]
        sign = "-" if line["reverse"] else "+"
        return f"{contig},{sign}{place + 1},{line['cigar']},{line['NM']};"


@pytest.mark.parametrize(("soft_clip", "eqx"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize(
    ("ends", "has_qualities", "orphans"),
    [(2, True, 0), (2, False, 0), (1, True, 0), (1, False, 0), (2, True, 0.3), (2, True, 1)],
)
def test_lines_are_those_of_the_oracle(ends, has_qualities, orphans, soft_clip, eqx):
    rng = np.random.default_rng(10 * ends + has_qualities)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 150, ends, has_qualities, orphans)
    both, mapped = random_mapped(rng, genome, chunk)
    records = alignment_records(genome.contig_starts, chunk, mapped, soft_clip)
    if eqx:
        records = with_mismatches(records, genome, chunk.offsets, both)
    form = {"soft_clip": soft_clip, "match": "=" if eqx else "M"}
    expected = list(Oracle(genome, chunk, both, *mapped, **form).lines())
    tables = mapped_tables(genome, names, ReadArrays.of(chunk, both), records, b"a group")
    for threads in (1, 3):
        parts = sam_records(tables, threads)
        text = b"".join(part.data for part in parts)
        assert text.decode().splitlines() == expected
        assert [part.data.size for part in parts] == [part.starts[-1] for part in parts]
        assert sum(part.count for part in parts) == len(expected)
    assert records.n_rows == len(expected) > chunk.n_reads - chunk.n_orphans
