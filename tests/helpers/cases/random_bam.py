"""Sorted BAM files of random pairs and single reads, of every kind that files may hold."""

import random
from pathlib import Path

import pysam

CONTIGS = {"one": 3000, "two": 900, "empty": 500, "rare": 2000}


def write_random_bam(path: Path, seed: int, templates: int = 400, longest: int = 120) -> None:
    """Write a sorted and indexed BAM file; `longest` is the most bases of a stretch."""
    rng = random.Random(seed)
    lines = []
    for number in range(templates):
        lines += _template(rng, f"t{number}", longest)
    names = list(CONTIGS)
    placed = [line for line in lines if line[2] != "*"]
    placed.sort(key=lambda line: (names.index(line[2]), int(line[3]), bool(int(line[1]) & 16)))
    placed += [line for line in lines if line[2] == "*"]
    text = "@HD\tVN:1.6\tSO:coordinate\n"
    text += "".join(f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in CONTIGS.items())
    text += "".join("\t".join(map(str, line)) + "\n" for line in placed)
    path.with_suffix(".sam").write_text(text)
    path.write_bytes(pysam.view("-b", "--no-PG", str(path.with_suffix(".sam")), catch_stdout=True))
    pysam.index(str(path))


def _cigar(rng: random.Random, longest: int) -> tuple[str, int, int]:
    """Return a CIGAR, the bases that it takes of the read, and its span."""
    parts, bases, span = [], 0, 0
    kind = rng.random()
    pieces = 1 if kind < 0.5 else rng.randint(2, 4)
    if pieces > 1 and rng.random() < 0.4:
        parts.append((rng.randint(1, 9), "S"))
    for piece in range(pieces):
        if piece:
            parts.append((rng.randint(1, 12), rng.choice("IDDN")))
        parts.append((rng.randint(1, max(1, longest // pieces)), rng.choice("MMMM=X")))
    if pieces > 1 and rng.random() < 0.4:
        parts.append((rng.randint(1, 9), "S"))
    for length, letter in parts:
        bases += length if letter in "MIS=X" else 0
        span += length if letter in "MDN=X" else 0
    return "".join(f"{length}{letter}" for length, letter in parts), bases, span


def _read(rng: random.Random, bases: int) -> tuple[str, str]:
    """Return bases and qualities."""
    letters = "".join(rng.choices("ACGTN", [9, 5, 4, 8, 0.3], k=bases))
    if rng.random() < 0.1:
        return letters, "*"
    return letters, "".join(rng.choices("#+5?I~", k=bases))


def _template(rng: random.Random, name: str, longest: int) -> list[list]:
    contig = rng.choices(["one", "two", "rare"], [8, 3, 0.02])[0]
    more = sum(flag for flag in (512, 1024) if rng.random() < 0.08)
    single = rng.random() < 0.2
    ends = []
    at = rng.randint(1, CONTIGS[contig] - 550)
    for _ in range(1 if single else 2):
        cigar, bases, span = _cigar(rng, longest)
        own = contig if rng.random() < 0.93 else rng.choice(["one", "two"])
        shift = rng.choice([0, 0, rng.randint(0, 150)])
        ends.append([own, at + shift if own == contig else 5, cigar, bases, span])
    unmapped = [rng.random() < 0.07 for _ in ends]
    reverse = [rng.random() < 0.5 for _ in ends]
    proper = not single and not any(unmapped) and ends[0][0] == ends[1][0] and rng.random() < 0.8
    lines = []
    for number, (own, position, cigar, bases, span) in enumerate(ends):
        flag = more | 16 * reverse[number] | 4 * unmapped[number]
        letters, qualities = _read(rng, bases)
        tags = [f"NM:i:{rng.randint(0, 9)}"] if rng.random() < 0.9 else []
        mate = ["*", 0, 0]
        if not single:
            other = ends[1 - number]
            flag |= 1 | (64, 128)[number] | 2 * proper
            flag |= 32 * reverse[1 - number] | 8 * unmapped[1 - number]
            if not proper and rng.random() < 0.05:
                flag ^= rng.choice([64, 128])
            mate = ["=" if other[0] == own else other[0], other[1], 0]
            if other[0] == own:
                size = max(position + span, other[1] + other[4]) - min(position, other[1])
                mate[2] = rng.choice([size, size, 9999]) * (1 if position <= other[1] else -1)
            if not unmapped[1 - number]:
                tags.append(f"MC:Z:{other[2]}")
            if all(unmapped):
                mate = ["*", 0, 0]
        if unmapped[number]:
            flag &= ~18
            cigar = "*"
            own, position = (own, position) if not single and not all(unmapped) else ("*", 0)
        quality = rng.choice([0, 3, 5, 30, 60])
        lines.append(
            [name, flag, own, position, quality, cigar, *mate, letters, qualities, "XZ:B:s,1,2"]
            + tags
        )
        if not unmapped[number] and rng.random() < 0.15:
            kind, clip = rng.choice([(2048, "7H"), (256, "")])
            letters, qualities = (letters, qualities) if kind == 2048 else ("*", "*")
            where = rng.randint(1, CONTIGS[own] - 400)
            lines.append(
                [name, flag | kind, own, where, quality, clip + cigar, *mate, letters, qualities]
                + tags
            )
    return lines
