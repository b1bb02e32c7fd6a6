"""Indexes with valid checksums and invalid contents: edited by hand, or by another program.

For any content of index.json and the arrays, every program ends in time, with its output or with
one sentence: never by a signal, never with a traceback. More examples: BWARP_EXAMPLES=1000 pytest
tests/hostile
"""

import contextlib
import io
import json
import os
import random
import shutil
import signal
import time
import traceback
import zlib
from pathlib import Path

import numpy as np
import pytest

from bwarp.io.chunk_files import text_sum
from tests.helpers.programs.programs_here import run_here

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))
SECONDS = 60

PROGRAMS = [
    ("map_reads", "-1", "reads.fq", "-o", "OUT/o.sam"),
    ("map_reads", "-1", "reads.fq", "-2", "mates.fq", "-o", "OUT/p.bam", "--sort"),
    ("find_seeds", "--queries", "reads.fq", "-o", "OUT/o.tsv", "-k", 20, "--mismatches", 1),
    ("find_seeds", "--queries", "reads.fq", "-o", "OUT/s.tsv", "-k", 10, "--site-sequence"),
    ("find_mems", "--queries", "genome.fa", "-o", "OUT/o.mums", "-l", 14),
    ("find_mems", "--queries", "genome.fa", "-o", "OUT/m.mums", "-l", 12, "--kind", "maxmatch"),
    ("find_alignments", "-1", "reads.fq", "-o", "OUT/a.tsv", "--edits", 3),
    ("find_alignments", "-1", "reads.fq", "-o", "OUT/a.bam", "--edits", 3),
    ("find_offtargets", "--guides", "guides.fa", "-o", "OUT/g.tsv", "--mismatches", 3),
]


def genome(chance: random.Random) -> bytes:
    """Return contigs with a repeat, with gaps, and with a run of one base at the end."""
    bases = "".join(chance.choices("ACGT", k=1500))
    repeat = bases[300:500]
    two = "".join(chance.choices("ACGT", k=700)) + repeat + "A" * 60
    return f">one\n{bases[:900]}{'N' * 40}{bases[900:]}{repeat}\n>two\n{two}\n>none\nNN\n".encode()


def reads_of(genome: bytes, chance: random.Random) -> tuple[bytes, bytes]:
    """Return reads of 70 bases and their mates."""
    texts = [text for text in genome.split(b"\n") if text and not text.startswith(b">")][:2]
    reads, mates = [], []
    for number in range(40):
        text = texts[number % 2]
        start = chance.randrange(len(text) - 200)
        read = bytearray(text[start : start + 70])
        read[chance.randrange(70)] = ord("C")
        mate = text[start + 130 : start + 200][::-1].translate(bytes.maketrans(b"ACGT", b"TGCA"))
        for records, bases in ((reads, bytes(read)), (mates, mate)):
            records.append(b"@%d\n%b\n+\n%b\n" % (number, bases, b"I" * 70))
    last = texts[1][-70:]
    reads.append(b"@last\n%b\n+\n%b\n" % (last, b"I" * 70))
    mates.append(b"@last\n%b\n+\n%b\n" % (last, b"I" * 70))
    return b"".join(reads), b"".join(mates)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write two indexes of genomes that only differ in the order of their bases, and queries."""
    folder = tmp_path_factory.mktemp("forged")
    chance = random.Random("genome")
    text = genome(chance)
    reads, mates = reads_of(text, chance)
    (folder / "genome.fa").write_bytes(text)
    (folder / "other.fa").write_bytes(text.translate(bytes.maketrans(b"ACGT", b"TGCA")))
    (folder / "reads.fq").write_bytes(reads)
    (folder / "mates.fq").write_bytes(mates)
    (folder / "guides.fa").write_bytes(b">g\n%bGATTACAGAT\n" % text[40:50])
    for name, made in (("i", "genome.fa"), ("other", "other.fa")):
        arguments = (folder / made, "-o", folder / name, "--prefix-length", 3, "--with-reverse")
        done = run_here("index_reference", *arguments, "--sa-rate", 3, folder=folder)
        assert done.rc == 0, done.said
    # In this process, so that each fork has the compiled functions.
    for outcome in run_all(folder, folder / "i", folder, PROGRAMS):
        assert outcome[1] == 0, outcome
    return folder


def run_all(folder: Path, index: Path, at: Path, programs: list[tuple]):
    """Run programs on an index; return the name, exit code and messages of each."""
    for name, *arguments in programs:
        out = at / "out"
        out.mkdir()
        words = [
            folder / word if str(word).endswith((".fq", ".fa"))
            else str(word).replace("OUT", str(out))
            for word in arguments
        ]  # fmt: skip
        try:
            done = run_here(name, "--index", index, *words, folder=out)
            yield " ".join(map(str, (name, *arguments))), done.rc, done.said
        except Exception:  # noqa: BLE001
            yield " ".join(map(str, (name, *arguments))), "traceback", traceback.format_exc()
        shutil.rmtree(out)


def run_apart(folder: Path, index: Path, at: Path, programs: list[tuple]):
    """Call `run_all` in a fork; return its result, and the signal that ended it, or None."""
    results = at / "results"
    process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException), open(results, "w") as file:
            for outcome in run_all(folder, index, at, programs):
                print(json.dumps(outcome), file=file, flush=True)
        os._exit(0)
    end = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            status = signal.SIGALRM
            break
        time.sleep(0.005)
    outcomes = [json.loads(line) for line in results.read_text().splitlines()]
    return outcomes, os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


VALUES = [
    0, 1, -1, 2, 3, 64, 2**31, 2**32, 2**63, 10**400, 0.5, 64.0, float("nan"), float("inf"), True,
    False, None, "", "64", "../../etc/passwd", "a/b", "\x1b[2J", "\ud800", "a\nb", "x" * 5000, [],
    {}, [[]], [1, 2], {"a": 1}, [0, 0, 0, 0, 0], -(2**40),
]  # fmt: skip


def places(value, path=()):
    """Return all keys and positions in a description."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, key))


def forge_description(index: Path, other: Path, description: dict, chance: random.Random) -> str:
    """Change any value, to a near or distant one; or remove or add one."""
    *path, key = chance.choice(list(places(description)))
    owner = description
    for step in path:
        owner = owner[step]
    kind = chance.choice(["value", "value", "near", "gone", "more", "nested", "twice"])
    if kind == "value":
        owner[key] = chance.choice(VALUES)
    elif kind == "near" and type(owner[key]) is int:
        owner[key] += chance.choice([-64, -32, -3, -1, 1, 2, 32, 4096, 2**31, 2**32])
    elif kind == "gone":
        del owner[key]
    elif kind == "more" and isinstance(owner, dict):
        owner[chance.choice(["../x.npy", "new", "alt"])] = chance.choice(VALUES)
    elif kind == "nested":
        for _ in range(400):
            owner[key] = [owner[key]]
    elif kind == "twice" and isinstance(owner, list):
        owner.append(owner[key])
    return f"{kind} at {path} {key}"


def header_of(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
    return file.getvalue()


def forge_array(index: Path, other: Path, description: dict, chance: random.Random) -> str:
    """Change the type, the shape, or numbers of one array, or replace it by another."""
    name = chance.choice(sorted(path.name for path in index.glob("*.npy")))
    array = np.load(index / name)
    kinds = ["type", "shape", "bits", "bits", "numbers", "numbers", "order", "other", "header"]
    kind = chance.choice([*kinds, "swapped", "zeros"])
    if kind == "type":
        array = array.astype(chance.choice(["<u1", "<i4", "<u8", "<f8", ">u4", "<i8", "<f4", "?"]))
    elif kind == "shape":
        array = chance.choice(
            [array[:-1], array[:0], array.reshape(-1), array.T, array[None], array.reshape(-1)[0],
             np.concatenate([array, array]), np.concatenate([array, array[-1:]])],
        )  # fmt: skip
    elif kind == "bits":
        flat = array.reshape(-1).view(np.uint8)
        for _ in range(chance.choice([1, 1, 8, 300])):
            flat[chance.randrange(flat.size)] ^= 1 << chance.randrange(8)
    elif kind in ("numbers", "zeros"):
        flat = array.reshape(-1)
        first = chance.randrange(flat.size)
        last = first + chance.choice([1, 1, 2, 30, flat.size])
        value = chance.choice([1, 2**31, 2**32 - 1, 2**63 - 1, description["text_length"] - 1])
        flat[first:last] = 0 if kind == "zeros" else min(value, np.iinfo(array.dtype).max)
    elif kind == "order":
        array = chance.choice([array[::-1], np.roll(array, 1, axis=0), np.sort(array, axis=0)])
    elif kind == "other":
        array = np.load(other / name)
    elif kind == "swapped":
        array = np.load(index / chance.choice(sorted(path.name for path in index.glob("*.npy"))))
    array = np.ascontiguousarray(array) if array.ndim else array
    stored = header_of(array) + array.tobytes()
    if kind == "header":
        old, new = chance.choice(
            [(b"False", b"True "), (b"<u4", b"|O4"), (b"(", b"-"), (b"NUMPY", b"NUMPI"),
             (b"\x01\x00", b"\x02\x00"), (b"{", b"("), (b"'shape': (", b"'shape': 9")],
        )  # fmt: skip
        stored = stored.replace(old, new, 1)
    (index / name).write_bytes(stored)
    record(description, name, stored)
    return f"{kind} of {name}"


def record(description: dict, name: str, stored: bytes) -> None:
    sums = {"bytes": len(stored), "crc32": [f"{zlib.crc32(stored):08x}"]}
    description["files"][name] = sums


def forge_bwt(index: Path, other: Path, description: dict, chance: random.Random) -> str:
    """Write a BWT with consistent counts that belongs to no text, or to another one.

    From some rows, LF steps may go in circles forever.
    """
    direction = chance.choice(["forward", "forward", "reverse"])
    blocks = np.load(index / f"{direction}_blocks.npy")
    rows = np.load(index / f"{direction}_separator_rows.npy").astype(np.int64)
    n, rate = description["text_length"], description["occ_rate"]
    noise = np.random.default_rng(chance.randrange(2**32))
    kind = chance.choice(["random", "one", "few"])
    bits = np.unpackbits(
        blocks[:, 4:].reshape(len(blocks), -1, 2).swapaxes(1, 2).copy().view(np.uint8),
        bitorder="little",
    ).reshape(len(blocks), 2, rate)  # fmt: skip
    codes = (bits[:, 0] + 2 * bits[:, 1]).reshape(-1)
    inside = np.ones(codes.size, bool)
    inside[rows] = False
    inside[n:] = False
    chosen = np.flatnonzero(inside)
    if kind == "few":
        chosen = noise.choice(chosen, 3)
    codes[chosen] = 2 if kind == "one" else noise.integers(0, 4, chosen.size)
    planes = np.stack([codes & 1, codes >> 1]).reshape(2, len(blocks), rate).swapaxes(0, 1)
    packed = np.packbits(planes.astype(np.uint8), axis=2, bitorder="little").view(np.uint32)
    blocks[:, 4:] = packed.reshape(len(blocks), 2, -1).swapaxes(1, 2).reshape(len(blocks), -1)
    counts = [(codes == code).reshape(len(blocks), rate).sum(axis=1) for code in (1, 2, 3)]
    for word, count in enumerate(counts):
        blocks[:, word] = np.cumsum(count) - count
    totals = [int(((codes == 0) & inside).sum()), *(int(count.sum()) for count in counts)]
    for name in ("forward", "reverse"):
        # Both texts have the same first rows.
        for part, array in (("blocks", blocks), ("separator_rows", rows.astype(np.uint32))):
            stored = header_of(array) + array.tobytes()
            (index / f"{name}_{part}.npy").write_bytes(stored)
            record(description, f"{name}_{part}.npy", stored)
    description["first_rows"] = np.cumsum([rows.size, *totals]).tolist()
    return f"{kind} bases in the BWT"


def forge_both(index: Path, other: Path, description: dict, chance: random.Random) -> str:
    """Forge contigs, rates and starts that are consistent with the rest."""
    kind = chance.choice(["borders", "start", "rate", "names", "one contig"])
    contigs = description["contigs"]
    if kind == "borders":
        moved = chance.choice([1, 30, 300, contigs[1]["length"]])
        contigs[0]["length"] += moved
        contigs[1]["length"] -= moved
    elif kind == "start":
        description["forward_text_start"] = chance.randrange(description["first_rows"][0])
    elif kind == "rate":
        array = np.load(index / "suffix_array.npy")
        description["sa_rate"] = 1
        array = np.resize(array, description["text_length"])
        stored = header_of(array) + array.tobytes()
        (index / "suffix_array.npy").write_bytes(stored)
        record(description, "suffix_array.npy", stored)
    elif kind == "names":
        name = chance.choice(["a/b", "\x00", "x" * 70_000, "../out", "*", "=", "a\tb", "\u2028"])
        contigs[chance.randrange(3)]["name"] = name
    else:
        length = sum(contig["length"] for contig in contigs)
        description["contigs"] = [contigs[0] | {"length": length}]
    return kind


#: The ways to forge, and their share in eighths.
FORGERIES = {
    "description": (forge_description, 3),
    "array": (forge_array, 3),
    "bwt": (forge_bwt, 1),
    "both": (forge_both, 1),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_index_is_refused_or_does_no_harm(folder, tmp_path, what):
    chance = random.Random(what)
    ways = {}
    for number in range(EXAMPLES * FORGERIES[what][1] // 8):
        index = tmp_path / "i"
        shutil.copytree(folder / "i", index)
        description = json.loads((index / "index.json").read_text())
        del description["sum"]
        how = FORGERIES[what][0](index, folder / "other", description, chance)
        text = json.dumps(description, sort_keys=True, separators=(",", ":"))
        description["sum"] = text_sum(text)
        (index / "index.json").write_text(json.dumps(description))
        programs = chance.sample(PROGRAMS, 5)
        outcomes, ended_by = run_apart(folder, index, tmp_path, programs)
        ran = len(outcomes)
        assert ended_by is None, f"{number}, {how}: signal {ended_by} in {programs[ran]}"
        assert ran == len(programs), (number, how)
        for name, rc, said in outcomes:
            assert rc in (0, 1, 2), f"{number}, {how}: {name}\n{said}"
            last = said.rstrip("\n").rpartition("\n")[2]
            if rc:
                assert ": error: " in last, (how, last)
                assert "\x1b" not in last, how
                assert any(
                    named in last for named in (str(index), "the index is invalid", "contig ")
                )
            ways[rc] = ways.get(rc, 0) + 1
        shutil.rmtree(index)
    assert ways.get(1, 0) or what == "both", ways


def test_a_genome_that_does_not_match_the_bwt(folder, tmp_path):
    """Unique matches exceeded their arrays or never ended; loci had more edits than found."""
    said = []
    for seed in range(30):
        index = tmp_path / "i"
        shutil.copytree(folder / "i", index)
        description = json.loads((index / "index.json").read_text())
        del description["sum"]
        words = np.load(index / "genome.npy")
        words = np.random.default_rng(seed).permutation(words)
        stored = header_of(words) + words.tobytes()
        (index / "genome.npy").write_bytes(stored)
        record(description, "genome.npy", stored)
        text = json.dumps(description, sort_keys=True, separators=(",", ":"))
        description["sum"] = text_sum(text)
        (index / "index.json").write_text(json.dumps(description))
        outcomes, ended_by = run_apart(folder, index, tmp_path, [PROGRAMS[4], PROGRAMS[6]])
        assert (len(outcomes), ended_by) == (2, None), seed
        assert {rc for _, rc, _ in outcomes} <= {0, 1}, outcomes
        said += [text for _, rc, text in outcomes if rc]
        shutil.rmtree(index)
    for problem in ("its genome does not match its BWT", "a read has more edits at a locus"):
        assert any(f"the index is invalid ({problem}" in text for text in said), said
