"""A haplotype with structural variants, and the variants in VCF files of callers."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pysam

from bwarp.sequence import decode, encode

__all__ = ["KINDS", "StructuralVariant", "correct_calls", "variants_in", "write_haplotype"]

#: Deletions, tandem duplications and inversions, as callers name them.
KINDS = ("DEL", "DUP", "INV")

SHORTEST, LONGEST = 200, 5000
#: Variants are at least this far apart, and from the ends of contigs.
APART = 3000
#: A call is correct if both of its ends are within this many bases of the variant's.
NEAR = 50


class StructuralVariant(NamedTuple):
    """A variant of bases `start` to `end` of a contig."""

    contig: str
    start: int
    end: int
    kind: str


def write_haplotype(fasta: Path, haplotype: Path, seed: int) -> list[StructuralVariant]:
    """Write a copy of a genome with variants as close to each other as `APART` allows.

    Variants in or next to ambiguous bases are left out.
    """
    rng = np.random.default_rng(seed)
    variants = []
    with pysam.FastxFile(str(fasta)) as file, open(haplotype, "wb") as out:
        for record in file:
            codes = encode(record.sequence.encode())
            pieces, done, start = [], 0, APART
            while start + LONGEST + APART <= codes.size:
                kind = KINDS[len(variants) % len(KINDS)]
                size = int(SHORTEST * (LONGEST / SHORTEST) ** rng.random())
                part = codes[start : start + size]
                if codes[start - APART : start + size + APART].max() < 4:
                    changed = {
                        "DEL": part[:0],
                        "DUP": np.concatenate([part, part]),
                        "INV": 3 - part[::-1],
                    }
                    pieces += [codes[done:start], changed[kind]]
                    done = start + size
                    variants.append(StructuralVariant(record.name, start, done, kind))
                start += size + APART + int(rng.integers(APART))
            pieces.append(codes[done:])
            out.write(b">%s\n%s\n" % (record.name.encode(), decode(np.concatenate(pieces))))
    return variants


def variants_in(vcf: Path) -> list[StructuralVariant]:
    """Return the deletions, duplications and inversions of a VCF or BCF file that pass filters."""
    found = []
    with pysam.VariantFile(str(vcf)) as file:
        for record in file:
            kind = record.info.get("SVTYPE", "").split(":")[0]
            passes = not record.filter.keys() or "PASS" in record.filter
            if kind in KINDS and passes:
                found.append(StructuralVariant(record.contig, record.start, record.stop, kind))
    return found


def correct_calls(
    true: list[StructuralVariant], called: list[StructuralVariant]
) -> dict[str, dict]:
    """Count, by kind, true variants, those called, and incorrect calls."""

    def is_same(one: StructuralVariant, other: StructuralVariant) -> bool:
        ends_are_near = max(abs(one.start - other.start), abs(one.end - other.end)) <= NEAR
        return (one.contig, one.kind) == (other.contig, other.kind) and ends_are_near

    counts = {}
    for kind in KINDS:
        variants = [one for one in true if one.kind == kind]
        calls = [one for one in called if one.kind == kind]
        counts[kind] = {
            "true": len(variants),
            "correct": sum(any(is_same(one, call) for call in calls) for one in variants),
            "incorrect": sum(not any(is_same(one, call) for one in variants) for call in calls),
        }
    return counts
