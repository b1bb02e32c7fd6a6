"""bwarp map: reads of up to 10,000 bases, such as contigs and amplicons."""

import numpy as np
import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, check_record, contigs_of, records

LETTERS = np.frombuffer(b"ACGT", np.uint8)


def with_differences(rng, letters, rate) -> bytes:
    """Return bases with mismatches, and some insertions and deletions of up to 8 bases."""
    parts, last = [], 0
    for at in np.flatnonzero(rng.random(letters.size) < rate):
        if at < last:
            continue
        parts.append(letters[last:at].tobytes())
        size, kind = int(rng.integers(1, 9)), rng.random()
        if kind < 0.8:
            others = [base for base in b"ACGT" if base != letters[at]]
            parts.append(bytes([rng.choice(others)]))
            last = at + 1
        elif kind < 0.9:
            parts.append(LETTERS[rng.integers(4, size=size)].tobytes())
            last = at
        else:
            last = at + size
    return b"".join([*parts, letters[last:].tobytes()])


@pytest.fixture(scope="module")
def long_reads(run_program, tmp_path_factory):
    """Return a genome with an older copy of itself, and reads of it."""
    folder = tmp_path_factory.mktemp("long")
    rng = np.random.default_rng(8)
    genome = LETTERS[rng.integers(4, size=120_000)]
    copy = with_differences(rng, genome, 0.03)
    (folder / "genome.fa").write_bytes(b">chr1\n%s\n>copy\n%s\n" % (genome.tobytes(), copy))
    with open(folder / "reads.fq", "wb") as file:
        for number, rate in enumerate([0.001, 0.003, 0.01] * 12):
            size = (1000, 3000, 6000, 9800)[number % 4]
            start = int(rng.integers(genome.size - size))
            piece = genome[start : start + size]
            if number % 3 == 2:
                # A long gap, far from the diagonal of most seeds.
                at = size // 3
                more = LETTERS[rng.integers(4, size=90)]
                piece = np.concatenate([piece[:at], *([more] if number % 2 else []), piece[at:]])
                piece = np.delete(piece, np.arange(at, at if number % 2 else at + 90))
            letters = with_differences(rng, piece, rate)[:10_000]
            if number % 2:
                letters = letters.translate(bytes.maketrans(b"ACGT", b"TGCA"))[::-1]
            file.write(b"@%d_%d_%d\n" % (number, start, start + size))
            file.write(b"%s\n+\n%s\n" % (letters, b"I" * len(letters)))
    done = run_program("index_reference.py", "genome.fa", "-o", "index", cwd=folder)
    assert done.rc == 0, done.stderr
    return folder


def test_they_are_mapped_from_end_to_end(run_program, long_reads):
    done = run_program(
        SCRIPT, "--index", "index", "-1", "reads.fq", "-o", "out.sam", "--backend", "cpu",
        cwd=long_reads,
    )  # fmt: skip
    assert (done.rc, done.stderr) == (0, "36 reads, 36 mapped\n")
    contigs = contigs_of(long_reads / "genome.fa")
    found = records(long_reads / "out.sam")
    assert len(found) == 36
    for record in found:
        check_record(record, contigs)
        number, start, stop = map(int, record.query_name.split("_"))
        assert (record.reference_name, record.is_reverse) == ("chr1", number % 2 == 1)
        # A gap near an end costs more than clipping it.
        assert abs(record.reference_start - start) <= 30
        assert abs(record.reference_end - stop) <= 30
        assert record.mapping_quality >= 30
