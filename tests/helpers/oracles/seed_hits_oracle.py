"""Seeds by comparing each k-mer with each window, and difficult genomes and queries."""

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.sequence import decode, encode, reverse_complement
from tests.helpers.oracles.index_oracle import index_of

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def random_bases(n: int, seed: int) -> bytes:
    return np.random.default_rng(seed).choice(LETTERS, n).tobytes()


def mutated(bases: bytes, positions, seed: int = 0) -> bytes:
    """Return the bases with a different base at each of these positions."""
    rng = np.random.default_rng(seed)
    changed = bytearray(bases)
    for position in positions:
        changed[position] = int(rng.choice([x for x in LETTERS if x != changed[position]]))
    return bytes(changed)


def opposite(bases: bytes) -> bytes:
    """Return the reverse complement of bases."""
    return decode(reverse_complement(encode(bases)))


def _random_genome() -> list[bytes]:
    return [random_bases(600, 1), b"N" * 7, random_bases(7, 2), random_bases(130, 3)]


def _repeats() -> list[bytes]:
    unit = random_bases(70, 4)
    copies = [mutated(unit, np.random.default_rng(i).integers(0, 70, i), i) for i in range(6)]
    palindrome = unit[:35] + opposite(unit[:35])
    return [
        copies[0] + b"AC" * 40 + copies[1] + opposite(copies[2]),
        b"A" * 90 + copies[3] + palindrome + b"T" * 70,
        copies[4] + b"CAG" * 25 + opposite(copies[5]) + palindrome,
    ]


def _gaps() -> list[bytes]:
    genome = bytearray(random_bases(400, 5))
    for start, length in ((0, 3), (40, 1), (60, 1), (100, 30), (171, 2), (250, 1), (398, 2)):
        genome[start : start + length] = b"N" * length
    return [bytes(genome), b"", b"NNN", b"ACGTACGTACGT", b"RYACGTTGCAACGTKM"]


def _many_contigs() -> list[bytes]:
    shared = random_bases(60, 6)
    rng = np.random.default_rng(7)
    starts = rng.integers(0, 40, 60)
    return [shared[start : start + rng.integers(1, 60)] for start in starts]


#: Genomes of a few hundred bases, as contigs of bases.
GENOMES = {
    "random": _random_genome(),
    "repeats": _repeats(),
    "gaps": _gaps(),
    "many contigs": _many_contigs(),
}


def kmers_like(contigs: list[bytes], k: int, mismatches: int, n: int, seed: int) -> list[bytes]:
    """Return k-mers of the contigs with up to one change more than allowed, and random ones."""
    rng = np.random.default_rng(seed)
    genome = b"".join(contigs)
    kmers = [b"A" * k, (b"AC" * k)[:k], random_bases(k, seed)]
    while len(kmers) < n:
        start = int(rng.integers(0, max(1, len(genome) - k)))
        kmer = genome[start : start + k].ljust(k, b"A").replace(b"N", b"G")
        kmer = decode(encode(kmer) % 4)
        n_changes = int(rng.integers(0, mismatches + 2))
        kmer = mutated(kmer, rng.choice(k, min(n_changes, k), replace=False), int(rng.integers(99)))
        kmers.append(opposite(kmer) if rng.integers(2) else kmer)
    return kmers


def hits_by_comparing(contigs: list[bytes], kmers: list[bytes], mismatches: int) -> list[tuple]:
    """Return (k-mer, strand, contig, position, mismatches) of each hit, in order."""
    hits = []
    codes = [encode(contig) for contig in contigs]
    for number, kmer in enumerate(kmers):
        for strand, pattern in enumerate((encode(kmer), encode(opposite(kmer)))):
            for contig, text in enumerate(codes):
                if text.size < pattern.size:
                    continue
                windows = np.lib.stride_tricks.sliding_window_view(text, pattern.size)
                found = (windows != pattern).sum(axis=1)
                found[(windows > 3).any(axis=1)] = pattern.size + 1
                hits += [
                    (number, strand, contig, int(at), int(found[at]))
                    for at in np.flatnonzero(found <= mismatches)
                ]
    return hits


def counts_when_stopped(
    contigs: list[bytes], kmers: list[bytes], hits: list[tuple], max_hits: int
) -> np.ndarray:
    """Return how many of the hits of each k-mer a search finds that stops above a limit.

    It takes the strings that occur in the genome in alphabetical order, first those similar to the
    k-mer, then those similar to its reverse complement.
    """
    places: dict[tuple, dict[bytes, int]] = {}
    for number, strand, contig, position, _ in hits:
        string = contigs[contig][position : position + len(kmers[number])]
        of_strand = places.setdefault((number, strand), {})
        of_strand[string] = of_strand.get(string, 0) + 1
    counts = np.zeros(len(kmers), np.int64)
    for number in range(len(kmers)):
        for strand in (0, 1):
            for _, n in sorted(places.get((number, strand), {}).items()):
                if not max_hits or counts[number] <= max_hits:
                    counts[number] += n
    return counts


def hits_of_parts(parts, reference) -> list[tuple]:
    """Return parts of `SeedHits` in the form of `hits_by_comparing`."""
    hits = []
    for part in parts:
        contigs = reference.contig_of(part.positions.astype(np.int64))
        positions = part.positions - reference.contig_starts[contigs]
        columns = (part.kmers, part.strands, contigs, positions, part.mismatches)
        hits += zip(*(column.tolist() for column in columns), strict=True)
    return hits


def batch_of(queries: dict[str, bytes], first_record: int = 0) -> SequenceBatch:
    """Return queries in the form in which the reader yields them."""
    names = [name.encode() for name in queries]
    edges = np.cumsum([0, *map(len, names)])
    lengths = [len(bases) for bases in queries.values()]
    return SequenceBatch(
        codes=encode(b"".join(queries.values())),
        offsets=np.cumsum([0, *lengths]),
        qualities=None,
        text=np.frombuffer(b"".join(names), np.uint8),
        headers=np.column_stack([edges[:-1], edges[1:]]),
        first_record=first_record,
    )


_INDEXES: dict[tuple, object] = {}


def index_of_genome(name: str, **parameters):
    """Return the index of one of `GENOMES`, built once."""
    key = (name, *sorted(parameters.items()))
    if key not in _INDEXES:
        _INDEXES[key] = index_of(GENOMES[name], **parameters)
    return _INDEXES[key]
