"""Reading pairs of sequences, in any chunks and threads, and errors that are found then."""

import numpy as np
import pytest

from bwarp.alignment.pair_files import read_pair_table, read_paired_files
from bwarp.errors import InputError
from bwarp.sequence import CODE_OF_BYTE

LONG = b"ACGT" * 250_001
REFUSED = (
    r", pair 2 \(b\): the product of the lengths 1,000,004 and 1,000,004 exceeds "
    "1,000,000,000,000: use a program for long sequences"
)


def test_a_pair_that_takes_hours(tmp_path):
    path = tmp_path / "long.fa"
    path.write_bytes(b">a\nACGT\n>b\n" + LONG + b"\n")
    with pytest.raises(InputError, match=REFUSED):
        list(read_paired_files(path, path, CODE_OF_BYTE))


def test_one_in_a_table(tmp_path):
    path = tmp_path / "long.tsv"
    path.write_bytes(b"a\tACGT\ta\tACGT\nb\t" + LONG + b"\tc\t" + LONG + b"\n")
    with pytest.raises(InputError, match=REFUSED):
        list(read_pair_table(path, CODE_OF_BYTE))


def test_one_long_and_one_short(tmp_path):
    (tmp_path / "long.fa").write_bytes(b">a\n" + LONG + b"\n")
    (tmp_path / "short.fa").write_bytes(b">b\nACGT\n")
    read = list(read_paired_files(tmp_path / "short.fa", tmp_path / "long.fa", CODE_OF_BYTE))
    assert [part.query_names.name(0) for part in read] == ["b"]


def described(batches):
    """Return every pair as its number, names, codes and qualities, and the error at the end."""
    pairs = []
    try:
        for named in batches:
            for i in range(named.pairs.count):
                start, length = (
                    int(of[i]) for of in (named.pairs.queries.starts, named.pairs.queries.lengths)
                )
                qualities = named.qualities
                pairs.append(
                    (
                        named.first + i,
                        named.query_names.name(i),
                        named.reference_names.name(i),
                        named.pairs.queries.sequence(i).tobytes(),
                        named.pairs.references.sequence(i).tobytes(),
                        None if qualities is None else qualities[start : start + length].tobytes(),
                    )
                )
    except InputError as error:
        return pairs, str(error)
    return pairs, None


def plain_table(path, text):
    """Read a table line by line."""
    pairs = []
    for number, line in enumerate(text.split(b"\n"), 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        fields = line.rstrip(b"\r").split(b"\t")
        if len(fields) not in (2, 4):
            columns = f"{len(fields)} column{'s' if len(fields) > 1 else ''}"
            return pairs, (
                f"{path}, line {number}: found {columns}: write query and reference, or query "
                "name, query, reference name and reference, separated by tabs"
            )
        name = str(len(pairs)).encode()
        names, sequences = ([name] * 2, fields) if len(fields) == 2 else (fields[::2], fields[1::2])
        codes = []
        for side, letters in zip(("query", "reference"), sequences, strict=True):
            if not letters:
                return pairs, f"{path}, line {number}: the {side} is empty: remove the line"
            for letter in letters:
                if CODE_OF_BYTE[letter] == 255:
                    return pairs, (
                        f"{path}, line {number}: {chr(letter)!r} in the {side} is not in the "
                        "alphabet of the scores"
                    )
            codes.append(bytes(CODE_OF_BYTE[list(letters)]))
        shown = [name.decode("utf-8", "replace") for name in names]
        pairs.append((len(pairs), *shown, *codes, None))
    return pairs, None


ROWS = (
    b"ACGT\tGG", b"q 1\tAC\tr\tNacgu", b"\xff\tA\t\tC", b"x\tACGT" + b"T" * 70 + b"\ty\tG",
    b"# a\tb", b"", b" \t\r", b"\v", b"T\tT\r\r", b"0\tN\t1\tA\r",
)  # fmt: skip
BAD_ROWS = (
    b"A", b"A\tC\tG", b"a\tA\tb\tC\t", b"\tA", b"A\t", b"n\t\tm\tA", b"n\tA\tm\t", b"AJ\tA",
    b"A\tA\x00", b"A\t\xe9", b" #\tA", b"A C\tA", b"A\t" + b"C" * 70 + b"*", b"\t\t\t\t\t",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_any_table_in_every_chunking(tmp_path, seed):
    rng = np.random.default_rng(seed)
    rows = [ROWS[i] for i in rng.integers(0, len(ROWS), 40)]
    for bad in BAD_ROWS if seed % 2 else ():
        rows.insert(int(rng.integers(20, 40)), bad)
    whole = b"\n".join(rows) + b"\n" * int(rng.integers(2))
    path = tmp_path / "t.tsv"
    for text in (whole, whole[: whole.rindex(b"\n")]):
        path.write_bytes(text)
        expected = plain_table(path, text)
        assert expected[0]
        for chunk_bytes in (1, 7, 64, 200, 1 << 20):
            for threads in (1, 3):
                pairs, error = described(read_pair_table(path, CODE_OF_BYTE, threads, chunk_bytes))
                assert error == expected[1]
                # Pairs of the chunk with the error are not given.
                assert pairs == expected[0][: len(pairs)]
                assert error or pairs == expected[0]


@pytest.mark.parametrize("bad", BAD_ROWS)
def test_bad_rows(tmp_path, bad):
    path = tmp_path / "t.tsv"
    text = b"AC\tGT\n#\n\n" + bad + b"\nA\tA\n"
    path.write_bytes(text)
    assert described(read_pair_table(path, CODE_OF_BYTE))[1] == plain_table(path, text)[1]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"# only\n\t\n", b"#"])
def test_tables_without_pairs(tmp_path, text):
    (tmp_path / "t.tsv").write_bytes(text)
    assert described(read_pair_table(tmp_path / "t.tsv", CODE_OF_BYTE, 2)) == ([], None)


def test_pairs_of_files_in_every_chunking(tmp_path):
    """Neither the sizes of chunks nor the threads change the pairs."""
    rng = np.random.default_rng(3)
    letters = np.frombuffer(b"ACGTN", np.uint8)
    sides = [
        [letters[rng.integers(0, 5, rng.integers(1, 90))].tobytes() for _ in range(60)]
        for _ in range(2)
    ]
    queries = b"".join(
        b"@q%d more\n%s\n+\n%s\n" % (i, one, bytes(rng.integers(33, 127, len(one)).tolist()))
        for i, one in enumerate(sides[0])
    )
    references = b"".join(
        b">r%d\n%s\r\n%s\n" % (i, one[:40], one[40:]) for i, one in enumerate(sides[1])
    )
    paths = tmp_path / "q.fq", tmp_path / "r.fa"
    for path, text in zip(paths, (queries, references), strict=True):
        path.write_bytes(text)
    expected, error = described(read_paired_files(*paths, CODE_OF_BYTE))
    assert error is None
    assert [pair[:3] for pair in expected] == [(i, f"q{i}", f"r{i}") for i in range(60)]
    for number, (one, other) in enumerate(zip(*sides, strict=True)):
        assert expected[number][3:5] == tuple(
            bytes(CODE_OF_BYTE[list(text)]) for text in (one, other)
        )
    assert b"\n".join(pair[5] for pair in expected) == b"\n".join(queries.split(b"\n")[3::4])
    assert described(read_paired_files(*paths, CODE_OF_BYTE, 3)) == (expected, None)
    for chunk_bytes in (1, 50, 400, 1000, 10_000):
        for threads in (1, 3):
            read = read_paired_files(*paths, CODE_OF_BYTE, threads, chunk_bytes)
            assert described(read) == (expected, None)


@pytest.mark.parametrize("threads", [1, 3])
def test_files_of_different_lengths(tmp_path, threads):
    for name, count in (("q.fa", 3), ("r.fa", 5)):
        (tmp_path / name).write_bytes(b">a\nA\n" * count)
    pairs, error = described(
        read_paired_files(tmp_path / "q.fa", tmp_path / "r.fa", CODE_OF_BYTE, threads)
    )
    assert len(pairs) == 3
    assert error == (
        f"{tmp_path / 'q.fa'} has 3 records but {tmp_path / 'r.fa'} has 5: query i is aligned to "
        "reference i, so their numbers must be equal"
    )
