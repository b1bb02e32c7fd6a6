"""CRAM joined from pieces has the records of BAM; a single piece is the file of samtools."""

import gzip
import hashlib
import random
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pysam
import pytest

from bwarp.bam import cram
from bwarp.bam.bgzf import read_bgzf
from bwarp.bam.cram import cram_file
from bwarp.bam.external_sort import whole_records
from bwarp.bam.header import split_header
from bwarp.bam.samtools import environment
from bwarp.errors import InputError

FEW, MANY = 3, 900


def make_bam(folder: Path, n_contigs: int, n_records: int, n_unmapped: int) -> SimpleNamespace:
    """Write a sorted BAM file of random records, and a folder with the sequences of its contigs."""
    rng = random.Random(n_contigs + n_records)
    names = [f"c{i}" for i in range(n_contigs)]
    letters = ["".join(rng.choices("ACGTN", (9, 9, 9, 9, 1), k=3000)) for _ in names]
    sums = [hashlib.md5(text.encode()).hexdigest() for text in letters]
    sequences = folder / "sequences"
    sequences.mkdir()
    for text, checksum in zip(letters, sums, strict=True):
        (sequences / checksum).write_text(text)
    (folder / "g.fa").write_text(
        "".join(f">{name}\n{text}\n" for name, text in zip(names, letters, strict=True))
    )
    lines = [
        "@HD\tVN:1.6\tSO:coordinate",
        *(f"@SQ\tSN:{n}\tLN:3000\tM5:{m}" for n, m in zip(names, sums, strict=True)),
        "@RG\tID:1\tSM:s",
    ]
    # Some contigs have no records, and some have many.
    used = sorted(rng.choices(range(n_contigs), k=n_records))
    places = sorted((contig, rng.randrange(2900), rng.random() < 0.5) for contig in used)
    for number, (contig, start, reverse) in enumerate(places):
        cigar, read = random_alignment(rng, letters[contig][start:])
        flag, *mate = rng.choice([(0, "*", 0, 0), (67, "=", 1, 40), (1091, "=", 9, -7)])
        quality = "".join(rng.choices("5?I", k=len(read)))
        tags = rng.choice([[], ["XA:Z:c1,+9,5M,0;"], ["AS:i:-7"]])
        fields = [f"r{number}", flag | 16 * reverse, names[contig], start + 1, 60, cigar, *mate]
        fields += [read, quality, "RG:Z:1", *tags]
        lines.append("\t".join(map(str, fields)))
    for number in range(n_unmapped):
        lines.append(f"u{number}\t4\t*\t0\t0\t*\t*\t0\t0\tACGTNACC\tIIII!III\tRG:Z:1")
    (folder / "r.sam").write_text("".join(line + "\n" for line in lines))
    # CRAM does not store MD and NM, which reading restores.
    bam = folder / "r.bam"
    pysam.calmd("--no-PG", "-b", str(folder / "r.sam"), str(folder / "g.fa"), save_stdout=str(bam))
    pysam.index(str(bam))
    with open(bam, "rb") as file:
        header, blocks = split_header(bam, read_bgzf(file, bam))
        parts = list(whole_records(bam, blocks, header.contig_starts))
    return SimpleNamespace(
        bam=bam, header=header, parts=parts, sequences=sequences, fasta=folder / "g.fa"
    )


def random_alignment(rng: random.Random, letters: str) -> tuple[str, str]:
    """Return a CIGAR string and a read of up to 40 bases at the start of the letters."""
    read = [letter if rng.random() > 0.02 else rng.choice("ACGT") for letter in letters[:30]]
    kind = rng.randrange(4)
    if kind == 1:
        return f"3S{len(read)}M", "ACG" + "".join(read)
    if kind == 2:
        return f"10M2I{len(read) - 10}M", "".join(read[:10]) + "TT" + "".join(read[10:])
    if kind == 3:
        return f"10M3D{len(read) - 13}M", "".join(read[:10] + read[13:])
    return f"{len(read)}M", "".join(read)


@pytest.fixture(scope="module")
def some(tmp_path_factory):
    """Return sets of records, made when first asked for."""
    made = {}

    def get(*numbers):
        if numbers not in made:
            made[numbers] = make_bam(tmp_path_factory.mktemp("records"), *numbers)
        return made[numbers]

    return get


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Return a function that writes CRAM in pieces of some size."""

    def write(records, piece, threads=2, version="3.0", most=None, folder="out"):
        monkeypatch.setattr(cram, "RECORDS_A_PIECE", piece)
        folder = tmp_path / folder
        shutil.copytree(records.sequences, folder)
        path = folder / "out.cram"
        with cram_file(path, records.header, threads, "given.cram", version) as writer:
            for part in records.parts:
                step = most or max(part.count, 1)
                for at in range(0, part.count, step):
                    # Give the records in another order, and their places in that order.
                    starts = part.starts[at : at + step + 1]
                    writer.write(*shuffled(part.data, starts))
        return path

    return write


def shuffled(data: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the records in a random order, with the order that restores theirs."""
    order = np.random.default_rng(starts.size).permutation(starts.size - 1)
    pieces = [data[starts[row] : starts[row + 1]] for row in order]
    ends = np.cumsum([0] + [piece.size for piece in pieces])
    mixed = np.concatenate([np.empty(0, np.uint8), *pieces])
    return mixed, ends, np.argsort(order).astype(np.uint32)


def lines_of(path, records, *regions) -> list[list[str]]:
    """Return the lines, with sorted tags: CRAM stores some tags separately."""
    text = pysam.view("-T", str(records.fasta), str(path), *regions)
    lines = (line.split("\t") for line in text.splitlines())
    return [fields[:11] + sorted(fields[11:]) for fields in lines]


SETS = [
    ((FEW, 25_000, 40), 11_000),
    ((FEW, 500, 0), 37),
    ((MANY, 1_500, 5), 400),
    ((1, 300, 300), 100),
    ((2, 0, 12), 5),
    ((2, 1, 0), 100),
    ((2, 0, 0), 100),
]


@pytest.mark.parametrize("version", ["3.0", "3.1"])
@pytest.mark.parametrize(("numbers", "piece"), SETS)
def test_records_are_those_of_bam(some, write, numbers, piece, version):
    records = some(*numbers)
    path = write(records, piece, version=version)
    assert lines_of(path, records) == lines_of(records.bam, records)
    header = pysam.view("--no-PG", "-H", str(records.bam))
    assert pysam.view("--no-PG", "-H", str(path)) == header
    assert path.read_bytes()[4:6] == bytes(map(int, version.split(".")))
    pysam.quickcheck("-v", str(path))
    # The index is the one that samtools makes, except that all unmapped records are found.
    theirs = path.with_name("theirs.crai")
    pysam.index(str(path), str(theirs))
    expected = gzip.decompress(theirs.read_bytes()).replace(b"-1\t0\t0\t", b"-1\t0\t1\t")
    assert gzip.decompress(Path(f"{path}.crai").read_bytes()) == expected
    rng = random.Random(version)
    regions = [f"c{rng.randrange(numbers[0])}:{rng.randrange(1, 2900)}-2950" for _ in range(6)]
    for region in ["*", "c0", *regions]:
        assert lines_of(path, records, region) == lines_of(records.bam, records, region)


@pytest.mark.skipif(
    shutil.which("PicardCommandLine") is None, reason="needs Picard (Debian: picard-tools)"
)
def test_htsjdk_reads_the_file(some, write):
    records = some(FEW, 25_000, 40)
    path = write(records, 11_000)
    fasta = records.fasta
    pysam.faidx(str(fasta))
    command = ["PicardCommandLine", "ViewSam", f"I={path}", f"R={fasta}", "QUIET=true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    lines = (line.split("\t") for line in done.stdout.splitlines() if line[:1] in "ru")
    assert [fields[:6] for fields in lines] == [
        fields[:6] for fields in lines_of(records.bam, records)
    ]


def test_bytes_do_not_depend_on_the_way_of_running(some, write):
    records = some(FEW, 500, 0)
    contents = set()
    for number, (threads, most) in enumerate([(1, None), (2, 50), (5, 3), (5, None)]):
        path = write(records, 37, threads, most=most, folder=str(number))
        contents.add(path.read_bytes() + Path(f"{path}.crai").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("version", ["3.0", "3.1"])
def test_a_single_piece_is_the_file_of_samtools(some, write, version):
    records = some(FEW, 25_000, 40)
    ours = write(records, 100_000, version=version).read_bytes()
    theirs = records.sequences / "theirs.cram"
    form = f"cram,version={version},level=4"
    code = "import pysam, sys; pysam.view(*sys.argv[1:], catch_stdout=False)"
    subprocess.run(
        [sys.executable, "-c", code, "--no-PG", "-O", form, "-o", theirs, records.bam],
        cwd=records.sequences, env=environment(), check=True,
    )  # fmt: skip
    expected = theirs.read_bytes()
    theirs.unlink()
    # The file names itself.
    name = slice(6, 26)
    assert (ours[name], expected[name]) == (
        b"out.cram".ljust(20, b"\0"), bytes(theirs.parent / "theirs.cram")[:20],
    )  # fmt: skip
    assert ours[:6] + ours[26:] == expected[:6] + expected[26:]


# --------------------------------------------------------------------------------------------------
# Containers: an oracle that reads numbers bit by bit.


class Fields:
    """Reads fields of CRAM one after another."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, longest: int = 5) -> int:
        bits = "".join(f"{byte:08b}" for byte in self.data[self.at : self.at + longest])
        ones = min(len(bits[:8]) - len(bits[:8].lstrip("1")), longest - 1)
        self.take(1 + ones)
        # A number of five bytes has no zero after its ones, and takes half of the last byte.
        first = ones + (ones < longest - 1)
        if longest == 5 and ones == 4:
            return int(bits[4:32] + bits[36:40], 2)
        return int(bits[first : 8 * (ones + 1)], 2)

    def long_number(self) -> int:
        return self.number(9)


def counts_in_containers(file: bytes) -> list[tuple[int, int, list[int]]]:
    """Return the numbers of records in each container, before it, and before its slices.

    Check sizes and checksums on the way.
    """
    counts, fields = [], Fields(file, 26)
    while fields.at < len(file):
        begin = fields.at
        size = int.from_bytes(fields.take(4), "little")
        *_, own = (fields.number() for _ in range(4))
        before, _, n_blocks = fields.long_number(), fields.long_number(), fields.number()
        landmarks = [fields.number() for _ in range(fields.number())]
        checked(fields, begin)
        first, slices = fields.at, {}
        for _ in range(n_blocks):
            block = fields.at
            method, kind = fields.take(2)
            fields.number()
            data = Fields(fields.take((fields.number(), fields.number())[0]))
            checked(fields, block)
            if kind == 2:
                assert method == 0
                _ = [data.number() for _ in range(4)]
                slices[block - first] = data.long_number()
        # The container of the header has further space.
        assert fields.at == first + size or not counts
        fields.at = first + size
        assert list(slices) == landmarks or not counts
        counts.append((own, before, list(slices.values())))
    return counts


def checked(fields: Fields, begin: int) -> None:
    expected = zlib.crc32(fields.data[begin : fields.at])
    assert int.from_bytes(fields.take(4), "little") == expected


def test_containers_count_the_records_before_them(some, write):
    records = some(FEW, 500, 0)
    # Beyond 127 records, numbers take more bytes.
    counts = counts_in_containers(write(records, 37).read_bytes())
    assert len(counts) > 14
    done = 0
    for own, before, slices in counts[1:-1]:
        assert before == done
        assert slices == [done]
        done += own
    assert done == 500
    assert counts[-1] == (0, 0, [])


def test_containers_of_several_slices():
    """htslib writes one slice per container; the specification allows several."""
    rng = random.Random(5)
    for _ in range(200):
        before, more = rng.choice([3, 200, 1 << 20, 1 << 40]), rng.choice([0, 9, 1 << 14, 1 << 50])
        container = made_container(rng, before)
        moved, slices = cram._with_records_before(container, more)
        (count,) = counts_in_containers(bytes(26) + moved)
        assert count[1:] == (before + more, [before + more + i for i in range(len(count[2]))])
        begin = cram._head_of_container(container, 0)
        end = cram._head_of_container(moved, 0)
        assert list(slices) == begin.slices
        assert [new for new, _ in slices.values()] == end.slices
        assert sum(growth for _, growth in slices.values()) == end.size - begin.size
        assert cram._with_records_before(moved, -more)[0] == container


def made_container(rng: random.Random, before: int) -> bytes:
    """Return a container of random blocks with one to three slices."""
    blocks, landmarks, n_blocks = block_of(1, rng.randbytes(rng.randrange(300))), [], 1
    for number in range(rng.randrange(1, 4)):
        landmarks.append(len(blocks))
        header = bits(rng.randrange(1 << 32)) + bits(7) + bits(1 << 20) + bits(40)
        header += bits(before + number, 9) + rng.randbytes(rng.randrange(60))
        inner = [block_of(4, rng.randbytes(rng.randrange(300))) for _ in range(rng.randrange(3))]
        blocks += b"".join([block_of(2, header), *inner])
        n_blocks += 1 + len(inner)
    head = len(blocks).to_bytes(4, "little") + bits(0xFFFFFFFE) + bits(1) + bits(300) + bits(120)
    head += bits(before, 9) + bits(12345, 9) + bits(n_blocks)
    head += b"".join(map(bits, [len(landmarks), *landmarks]))
    return head + zlib.crc32(head).to_bytes(4, "little") + blocks


def block_of(kind: int, data: bytes) -> bytes:
    block = bytes([0, kind]) + bits(3) + 2 * bits(len(data)) + data
    return block + zlib.crc32(block).to_bytes(4, "little")


def bits(value: int, longest: int = 5) -> bytes:
    """Return the shortest form of a number."""
    for more in range(longest - 1):
        if value < 1 << 7 * (more + 1):
            text = "1" * more + f"{value:0{8 * (more + 1) - more}b}"
            return int(text, 2).to_bytes(more + 1, "big")
    if longest == 9:
        return b"\xff" + value.to_bytes(8, "big")
    text = f"1111{value:032b}"
    return int(text[:32] + "0000" + text[32:], 2).to_bytes(5, "big")


@pytest.mark.parametrize("most", [4, 8])
def test_numbers(most):
    rng = random.Random(most)
    largest = 8 * most
    for size in range(largest + 1):
        for value in (*(rng.getrandbits(size) for _ in range(20)), (1 << size) - 1):
            data = cram._bytes_of_number(value, most)
            assert data == bits(value, most + 1)
            assert Fields(data + b"rest").number(most + 1) == value
            assert cram._number(b"x" + data + b"rest", 1, most) == (value, 1 + len(data))


# --------------------------------------------------------------------------------------------------
# Failures of the processes.


def test_a_failure_of_samtools_is_one_sentence(some, write):
    with pytest.raises(InputError) as error:
        write(some(FEW, 500, 0), 37, version="9.9")
    assert re.fullmatch(
        r"given\.cram: samtools could not make the file \(.*\)", str(error.value)
    ), error.value


def test_an_ended_process_is_an_error(some, tmp_path, monkeypatch):
    records = some(FEW, 25_000, 40)
    folder = tmp_path / "out"
    shutil.copytree(records.sequences, folder)
    monkeypatch.setattr(cram, "RECORDS_A_PIECE", 2_000)

    def write_and_end() -> None:
        with cram_file(folder / "out.cram", records.header, 1, "given.cram", "3.0") as writer:
            for part in records.parts:
                writer.write(part.data, part.starts)
                for encoder in writer._encoders._all:
                    encoder.stop()

    with pytest.raises(InputError) as error:
        write_and_end()
    assert str(error.value) == "given.cram: samtools could not make the file (exit code -9)"


def test_no_process_is_left_behind(some, write, monkeypatch):
    begun = []
    popen = subprocess.Popen

    def begin(*arguments, **options):
        begun.append(popen(*arguments, **options))
        return begun[-1]

    monkeypatch.setattr(cram.subprocess, "Popen", begin)
    records = some(FEW, 500, 0)
    write(records, 37, threads=5)
    assert 1 <= len(begun) <= 5
    records = SimpleNamespace(**vars(records) | {"parts": [*records.parts, None]})
    with pytest.raises(AttributeError):
        write(records, 37, threads=5, folder="again")
    assert all(process.returncode is not None for process in begun)
