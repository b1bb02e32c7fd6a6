"""Genomes made of pieces of a reference, and their alignments to it as PAF and chain files."""

from typing import NamedTuple

from tests.helpers.oracles.offtargets_oracle import opposite


class Piece(NamedTuple):
    """A part of a contig of the genome that is aligned to a part of the reference.

    `start` and `stop` are positions in the genome, `ops` lists pairs of a letter (M, I, D) and a
    length in the direction of the reference, which begins at `reference_start`.
    """

    genome: str
    start: int
    stop: int
    reference: str
    reference_start: int
    reference_stop: int
    is_reverse: bool
    ops: list
    score: int


def edited(text: str, rng, rate: float) -> tuple[str, list]:
    """Return a text with random edits, and its alignment: M, I, D, and both for replaced bases."""
    letters, ops, at = [], [], 0
    while at < len(text):
        kind = rng.random()
        inside = 3 < at < len(text) - 12
        n = int(rng.integers(1, 6))
        if inside and kind < rate / 3 and ops[-1][0] == "M":
            letters.append("".join(rng.choice(list("ACGT"), n)))
            ops.append(("I", n))
        elif inside and kind < rate / 2 and ops[-1][0] == "M":
            ops.append(("D", n))
            at += n
        elif inside and kind < 0.6 * rate and ops[-1][0] == "M":
            letters.append("".join(rng.choice(list("ACGT"), n + 1)))
            ops += [("I", n + 1), ("D", n)]
            at += n
        letters.append(str(rng.choice(list("ACGT"))) if kind > 1 - rate else text[at])
        if ops and ops[-1][0] == "M":
            ops[-1] = ("M", ops[-1][1] + 1)
        else:
            ops.append(("M", 1))
        at += 1
    return "".join(letters), ops


def random_genome(contigs: dict, rng, prefix: str, rate=0.03) -> tuple[dict, list[Piece]]:
    """Return contigs of a genome, and its pieces: some turned, some on the same bases."""
    texts, pieces = {}, []
    for number, (name, text) in enumerate(contigs.items()):
        contig = f"{prefix}{number}"
        edges = sorted(rng.choice(range(1, len(text)), 2, replace=False).tolist())
        cuts = [(0, edges[0]), (edges[0], edges[1]), (edges[1], len(text))]
        made = ""
        for part, (first, last) in enumerate(cuts):
            new, ops = edited(text[first:last], rng, rate)
            is_reverse = part == 1
            if part == 2 and number % 2:
                made += new  # not aligned
                continue
            pieces.append(Piece(
                contig, len(made), len(made) + len(new), name, first, last, is_reverse, ops,
                len(pieces) % 3,
            ))  # fmt: skip
            made += opposite(new) if is_reverse else new
        texts[contig] = made + text[20:70]
        # Other alignments of the same bases.
        other = list(contigs)[(number + 1) % len(contigs)]
        for start, score in ((5, 1 + number % 2), (30, 0)):
            pieces.append(Piece(
                contig, start, start + 40, other, 3, 43, number % 2 == 0, [("M", 40)], score
            ))  # fmt: skip
    return texts, pieces


def paf_text(pieces, genome: dict, reference: dict) -> str:
    lines = []
    for one in pieces:
        cigar = "".join(f"{n}{letter}" for letter, n in one.ops)
        lines.append("\t".join(map(str, [
            one.genome, len(genome[one.genome]), one.start, one.stop, "+-"[one.is_reverse],
            one.reference, len(reference[one.reference]), one.reference_start, one.reference_stop,
            one.score, one.stop - one.start, 60, "tp:A:P", f"cg:Z:{cigar}",
        ])))  # fmt: skip
    return "".join(f"{line}\n" for line in lines)


def chain_text(pieces, genome: dict, reference: dict) -> str:
    lines = ["# a comment"]
    for number, one in enumerate(pieces):
        length, strand = len(reference[one.reference]), "+-"[one.is_reverse]
        start, stop = one.reference_start, one.reference_stop
        if one.is_reverse:
            start, stop = length - stop, length - start
        lines.append(
            f"chain {one.score} {one.genome} {len(genome[one.genome])} + {one.start} {one.stop} "
            f"{one.reference} {length} {strand} {start} {stop} {number}"
        )
        rows = []
        for letter, n in one.ops[::-1] if one.is_reverse else one.ops:
            if letter == "M":
                rows.append([n, 0, 0])
            else:
                rows[-1][1 if letter == "I" else 2] += n
        lines += [" ".join(map(str, row)) for row in rows[:-1]] + [str(rows[-1][0]), ""]
    return "\n".join(lines) + "\n"
