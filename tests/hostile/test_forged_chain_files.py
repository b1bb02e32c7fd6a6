"""Files of the chain with valid checksums and invalid contents: forged, or from another program.

The next step reads each in a separate process. It accepts the file, or rejects it with a sentence
that names it: no signal, no traceback, no hang. More examples: BWARP_EXAMPLES=1000 pytest
tests/hostile
"""

import gzip
import json
import os
import random
import shutil
import subprocess
import zlib

import numpy as np
import pytest

from bwarp.io.chunk_files import VERSION, open_chunk_file, packed_chunk, text_sum, write_chunk_file
from tests.helpers.programs.programs_here import run_here

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))

#: No step takes a tenth of this, except the first, which may compile while other tests run.
SECONDS = 200

#: Values just outside, or far outside, the range of an array.
VALUES = [-(1 << 63), -(1 << 31), -65, -2, -1, 0, 1, 2, 3, 7, 31, 32, 33, 64, 126, 127, 255]
VALUES += [1000, 10_001, 65_536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1]

#: Replacements for the first line.
TEXTS = [None, True, -1, 0, 1, 99, 2.5, 1 << 70, float("nan"), "all", "", [], [1], {}, "@RG\tID:x"]

TYPES = ["|u1", "|b1", "<i4", "<u4", "<i8", "<u8", ">i8", "<f8", "<U4", "|S9", "|O", "|V8", "i4,i4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write outputs of the steps for pairs and single reads, with and without qualities."""
    folder = tmp_path_factory.mktemp("whole")
    chance = random.Random(5)
    one = "".join(chance.choice("ACGT") for _ in range(700))
    two = one[100:300] + "NNN" + "".join(chance.choice("ACGT") for _ in range(200))
    (folder / "g.fa").write_text(f">one\n{one}\n>two\n{two}\n")
    reads = [[], []]
    for number in range(12):
        at = chance.randrange(500)
        template = list((one + two.replace("N", "A"))[at : at + 150])
        template[chance.randrange(150)] = chance.choice("ACGTN")
        ends = "".join(template[:50]), "".join(template[100:])[::-1]
        ends = ends[0], ends[1].translate(str.maketrans("ACGT", "TGCA"))
        for end, bases in zip(reads, ends, strict=True):
            end.append((f"q{number} RX:Z:TTA", bases))
    for path, end in zip(("1.fa", "2.fa"), reads, strict=True):
        (folder / path).write_text("".join(f">{name}\n{bases}\n" for name, bases in end))
    single = (f"@{name}\n{bases}\n+\n{'I' * len(bases)}\n" for name, bases in reads[0])
    (folder / "s.fq").write_text("".join(single))
    index, size = ("--index", folder / "i"), ("--batch-size", 8)
    steps = [
        ("index_reference", folder / "g.fa", "-o", folder / "i", "--sa-rate", 4),
        ("batch_reads", "-1", folder / "1.fa", "-2", folder / "2.fa", "-o", folder / "p", *size),
        ("batch_reads", "-1", folder / "s.fq", "-o", folder / "s", *size),
    ]
    for kind in ("p", "s"):
        reads = ("--reads", folder / kind / "0.reads")
        hits = ("--hits", folder / f"{kind}.hits")
        candidates = ("--candidates", folder / f"{kind}.candidates")
        limits = ("--edits", 3) if kind == "p" else ("--edits", "4", "--report", "best")
        steps += [
            ("seed_reads", *index, *reads, "-o", folder / f"{kind}.seeds", *limits),
            ("locate_seeds", *index, "--seeds", folder / f"{kind}.seeds", "-o", hits[1]),
            ("filter_candidates", *index, *reads, *hits, "-o", candidates[1]),
            (
                "extend_candidates",
                *index,
                *reads,
                *candidates,
                "-o",
                folder / f"{kind}.loci",
                *(("--extension", "local") if kind == "s" else ()),
            ),
        ]
    after = ("--after", folder / "s.loci", "-o", folder / "t.seeds")
    seeds, hits = ("--seeds", folder / "t.seeds"), folder / "t.hits"
    scores = ("--extension", "local")
    steps += [
        ("seed_reads", *index, *reads, *after, *limits),
        ("locate_seeds", *index, *seeds, "-o", hits),
        ("extend_candidates", *index, *reads, "--candidates", hits, "-o", folder / "t.loci",
         *scores),
    ]  # fmt: skip
    of_pairs = ("--reads", folder / "p/0.reads", "--loci", folder / "p.loci")
    steps += [
        ("estimate_allmap_insert_size", *index, *of_pairs, "-o", folder / "size.json"),
        ("write_alignments", *index, *of_pairs, "-o", folder / "o.tsv", "--stats",
         folder / "o.stats.json"),
    ]  # fmt: skip
    for name, *arguments in steps:
        done = run_here(name, *arguments, folder=folder)
        assert done.rc == 0, done.said
    return folder


OF_PAIRS = ("write_alignments", "--index", "i", "--reads", "p/0.reads", "--loci", "p.loci")
OF_SINGLE = ("write_alignments", "--index", "i", "--reads", "s/0.reads", "--loci", "s.loci",
             "t.loci")  # fmt: skip
BEST = ("--edits", "4", "--report", "best")

#: The forged files, and the steps that read them.
STEPS = {
    "p/0.reads": [
        ("seed_reads", "--index", "i", "--reads", "p/0.reads", "-o", "OUT/o", "--edits", "3"),
        ("filter_candidates", "--index", "i", "--reads", "p/0.reads", "--hits", "p.hits",
         "-o", "OUT/o"),
        ("map_reads", "--index", "i", "--batches", "p", "-o", "OUT/o.sam"),
        ("estimate_map_insert_size", "--index", "i", "--batches", "p", "-o", "OUT/o.json"),
        (*OF_PAIRS, "-o", "OUT/o.bam", "--insert-size", "150,20"),
    ],
    "s/0.reads": [
        ("seed_reads", "--index", "i", "--reads", "s/0.reads", "-o", "OUT/o", "--edits", "3"),
        ("map_reads", "--index", "i", "--batches", "s", "-o", "OUT/o.bam", "--sort"),
        (*OF_SINGLE, "-o", "OUT/o.tsv"),
    ],
    "p.seeds": [("locate_seeds", "--index", "i", "--seeds", "p.seeds", "-o", "OUT/o")],
    "p.hits": [
        ("filter_candidates", "--index", "i", "--reads", "p/0.reads", "--hits", "p.hits",
         "-o", "OUT/o"),
        ("extend_candidates", "--index", "i", "--reads", "p/0.reads", "--candidates", "p.hits",
         "-o", "OUT/o"),
    ],
    "s.candidates": [
        ("extend_candidates", "--index", "i", "--reads", "s/0.reads", "--candidates",
         "s.candidates", "-o", "OUT/o"),
    ],
    "p.loci": [
        (*OF_PAIRS, "-o", "OUT/o.bam", "--insert-size", "150,20"),
        (*OF_PAIRS, "-o", "OUT/o.tsv"),
        ("estimate_allmap_insert_size", "--index", "i", "--reads", "p/0.reads", "--loci", "p.loci",
         "-o", "OUT/o.json"),
    ],
    "s.loci": [
        ("seed_reads", "--index", "i", "--reads", "s/0.reads", "--after", "s.loci", "-o", "OUT/o",
         *BEST),
        (*OF_SINGLE, "-o", "OUT/o.paf"),
        (*OF_SINGLE, "-o", "OUT/o.bam"),
    ],
    "t.loci": [
        (*OF_SINGLE, "-o", "OUT/o.paf"),
        (*OF_SINGLE, "-o", "OUT/o.bam"),
    ],
    "size.json": [(*OF_PAIRS, "-o", "OUT/o.bam", "--estimated-insert-size", "size.json")],
    "o.stats.json": [("merge_loci", "o.tsv", "-o", "OUT/m.tsv")],
}  # fmt: skip


def forge(path, chance: random.Random) -> str:
    """Change the content of a file and its checksums; return a description."""
    if path.suffix == ".json":
        return forge_json(path, chance)
    kind = path.suffix.removeprefix(".")
    with open_chunk_file(path, kind) as reader:
        first = {"format": "bwarp frames", "version": VERSION} | reader.holds
        frames = [[frame, arrays, {}] for frame, arrays in reader]
    how = forge_values(first, chance) if chance.random() < 0.15 else forge_frames(frames, chance)
    with open(path, "wb") as file:
        put_line(file, first)
        for name, arrays, said in frames:
            arrays = {key: np.ascontiguousarray(array) for key, array in arrays.items()}
            described = [
                [*said.get(key, [key, array.dtype.str, array.shape, array.dtype.str]),
                 zlib.crc32(array.tobytes())]
                for key, array in arrays.items()
            ]  # fmt: skip
            put_line(file, {"frame": name, "arrays": described})
            content = b"".join(array.tobytes() for array in arrays.values())
            file.write(content)
        put_line(file, {"end": len(frames)})
    return how


def put_line(file, content) -> None:
    file.write(json.dumps(content | {"sum": text_sum(json.dumps(content))}).encode() + b"\n")


def forge_values(values: dict, chance: random.Random) -> str:
    """Change a value, possibly in an inner dictionary."""
    key = chance.choice([*values, "more"])
    inner = values.get(key)
    if isinstance(inner, dict) and chance.random() < 0.9:
        return f"{key}: {forge_values(inner, chance)}"
    if key in values and chance.random() < 0.2:
        del values[key]
        return f"no {key}"
    values[key] = chance.choice([*TEXTS, *VALUES])
    return f"{key} = {values[key]!r}"


def forge_json(path, chance: random.Random) -> str:
    values = json.loads(path.read_bytes())
    if chance.random() < 0.15:
        text = chance.choice(["", "[]", "3", "\x00", "\udcff", "[" * 100_000, '{"a":' * 100_000])
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        return f"text {text[:9]!r}"
    how = forge_values(values, chance)
    path.write_text(json.dumps(values))
    return how


def forge_frames(frames: list, chance: random.Random) -> str:
    number = chance.randrange(len(frames))
    frame, arrays, said = frames[number]
    kind = chance.choice(["frame", *["values"] * 8, "size", "type", "said", "array"])
    if kind == "frame":
        kind = chance.choice(["twice", "gone", "moved", "named", "none"])
        if kind == "twice":
            frames.insert(number, frames[number])
        elif kind == "named":
            frames[number][0] = chance.choice(["reads", "searched", "hits", "loci", "", "x"])
        elif kind == "none":
            frames.clear()
        else:
            frames.pop(number)
            if kind == "moved":
                frames.insert(chance.randrange(len(frames) + 1), [frame, arrays, said])
        return f"frame {number} {kind}"
    key = chance.choice(list(arrays))
    array = arrays[key].copy()
    how = f"{frame} {number}, {key}: {kind}"
    if kind == "array":
        other = chance.choice(list(arrays))
        arrays[key], arrays[other] = arrays[other], arrays[key]
        if chance.random() < 0.5:
            del arrays[key]
        return f"{how} {other}"
    if kind == "said":
        shape = chance.choice([[1 << 62], [-1], [0], [], [2.5], ["a"], None, [1 << 70, 0], [9, 9]])
        said[key] = chance.choice(
            [
                [key, array.dtype.str, shape, array.dtype.str],
                [key, chance.choice(TYPES), array.shape, array.dtype.str],
                [key, array.dtype.str, array.shape, chance.choice([*TYPES, "<u2", None])],
                [key],
            ]
        )
        return f"{how} {said[key]}"
    if kind == "type":
        arrays[key] = array.astype(chance.choice(["u1", "?", "i4", "u4", "i8", "u8", "f8", ">i8"]))
        return f"{how} {arrays[key].dtype}"
    if kind == "size":
        flat = array.reshape(-1)
        cut = chance.randrange(flat.size + 1)
        arrays[key] = chance.choice([flat[:cut], np.concatenate([flat, flat]), flat.reshape(-1, 1)])
        return f"{how} {arrays[key].shape}"
    if not array.size:
        return f"{how} none"
    for _ in range(chance.choice([1, 1, 2, array.size])):
        at = chance.randrange(array.size)
        near = int(array.flat[at]) + chance.choice([-1, 1])
        value = chance.choice([near, near, *VALUES])
        if array.dtype == np.bool_:
            array.view(np.uint8).flat[at] = value & 255
        else:
            array.flat[at] = np.array(value & (1 << 64) - 1, np.uint64).astype(array.dtype)
        how += f" [{at}] = {array.flat[at]}"
    arrays[key] = array
    return how[:200]


def problem_of(what: str, name: str, done, written: list) -> str | None:
    """Return what a step did wrong with a forged file; None if nothing."""
    if "Traceback" in done.stderr or done.rc not in (0, 1, 2):
        return "ended badly"
    if done.rc == 0:
        return None
    last = done.stderr.rstrip("\n").rpartition("\n")[2]
    if f"{name}.py: error: " not in last or written:
        return "not refused as it should be"
    # If reads are forged, the files of their hits do not match them.
    return None if what in last or "/" in what else "names no file"


def test_forged_files_are_refused_or_do_no_harm(folder, tmp_path, run_program):
    chance = random.Random(EXAMPLES)
    names = [path.name for path in folder.iterdir()]
    problems, refused = [], 0
    for number in range(EXAMPLES):
        work = tmp_path / str(number)
        (work / "OUT").mkdir(parents=True)
        for name in names:
            (work / name).symlink_to(folder / name)
        what = chance.choice(list(STEPS))
        copied = what.partition("/")[0]
        (work / copied).unlink()
        copy = shutil.copytree if "/" in what else shutil.copy
        copy(folder / copied, work / copied)
        how = forge(work / what, chance)
        name, *arguments = chance.choice(STEPS[what])
        arguments += ["--threads", "2", "--backend", "cpu"]
        try:
            done = run_program(f"{name}.py", *arguments, cwd=work, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            problems.append(f"{number}: {name}: does not end: {what}: {how}")
            continue
        problem = problem_of(what, name, done, list((work / "OUT").iterdir()))
        if problem is not None:
            problems.append(f"{number}: {name}: {problem}: {what}: {how}: {done.rc} {done.stderr}")
        refused += done.rc != 0
        shutil.rmtree(work)
    assert not problems, "\n".join(problems)
    assert refused > EXAMPLES // 3


def _first_aligned(arrays):
    return int(np.argmax(np.diff(arrays["offsets"]) > 0))


def _operation(arrays, code):
    at = arrays["offsets"][_first_aligned(arrays)]
    arrays["cigar"][at] = arrays["cigar"][at] & ~np.uint32(15) | np.uint32(code)


def _longer(arrays):
    arrays["cigar"][arrays["offsets"][_first_aligned(arrays)]] += np.uint32(16)


def _split(arrays):
    """Cut the first CIGAR in three, the middle part clipped."""
    first = _first_aligned(arrays)
    at = arrays["offsets"][first]
    size = int(arrays["cigar"][at] >> 4)
    parts = np.array([(size - 2) << 4, 1 << 4 | 4, 1 << 4], np.uint32)
    arrays["cigar"] = np.concatenate([arrays["cigar"][:at], parts, arrays["cigar"][at + 1 :]])
    arrays["offsets"][first + 1 :] += 2


def _without_any(arrays):
    first = _first_aligned(arrays)
    sizes = np.diff(arrays["offsets"])
    arrays["cigar"] = arrays["cigar"][sizes[first] :]
    arrays["offsets"][first + 1 :] -= sizes[first]


def _falling(arrays):
    arrays["offsets"][1] = arrays["offsets"][-1] + 1


def _shifted(arrays):
    arrays["aligned"][_first_aligned(arrays), :2] -= 1


def _negative(arrays):
    arrays["aligned"][_first_aligned(arrays), 2] = -1


NO_ALIGNMENT = "(cigar: no alignment of a read at ["


@pytest.mark.parametrize(
    ("what", "change", "message"),
    [
        ("p.loci", _longer, NO_ALIGNMENT),
        ("p.loci", lambda arrays: _operation(arrays, 1), NO_ALIGNMENT),
        ("p.loci", lambda arrays: _operation(arrays, 4), NO_ALIGNMENT),
        ("s.loci", lambda arrays: _operation(arrays, 3), NO_ALIGNMENT),
        ("s.loci", lambda arrays: _operation(arrays, 7), NO_ALIGNMENT),
        ("s.loci", _split, NO_ALIGNMENT),
        ("s.loci", _shifted, NO_ALIGNMENT),
        ("s.loci", _negative, NO_ALIGNMENT),
        ("s.loci", _without_any, "(cigar: no alignment of read "),
        ("p.loci", _without_any, "(cigar: no alignment of read "),
        ("p.loci", _falling, "(offsets: "),
        ("s.loci", lambda arrays: arrays.pop("aligned"), "(aligned: missing)"),
        ("s.loci", lambda arrays: arrays.pop("cigar"), "(cigar: missing)"),
    ],
)  # fmt: skip
def test_invalid_alignments_are_refused(folder, tmp_path, monkeypatch, what, change, message):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with open_chunk_file(what, "loci") as reader:
        first, frames = dict(reader.holds), list(reader)
    change(next(arrays for kind, arrays in frames if kind == "loci" and arrays["cigar"].size))
    with write_chunk_file(what, **first) as writer:
        for kind, arrays in frames:
            writer.write(packed_chunk(kind, **arrays))
    name, *arguments = OF_PAIRS if what == "p.loci" else OF_SINGLE
    done = run_here(name, *arguments, "-o", "o.bam", folder=tmp_path)
    assert done.rc == 1
    start = f"{name}.py: error: {what}: these loci are not valid output of bwarp extend-candidates "
    assert done.last_line.startswith(start + message)
    assert done.last_line.endswith("): make them again")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("extension", None),
        ("extension", {"name": "edits", "match": 1}),
        ("extension", {"name": "local"}),
        ("extension", {"name": "local", "match": 1.0, "mismatch": -4, "gap_open": 6,
                       "gap_extend": 1}),
        ("extension", {"name": ["local"], "match": 1, "mismatch": -4, "gap_open": 6,
                       "gap_extend": 1}),
        ("extension", {"name": "local", "match": True, "mismatch": -4, "gap_open": 6,
                       "gap_extend": 1}),
        ("max_places", -1),
        ("max_places", "all"),
        ("max_places", 1 << 70),
    ],
)  # fmt: skip
def test_other_ways_to_align_are_refused(folder, tmp_path, monkeypatch, key, value):
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with open_chunk_file("p.loci", "loci") as reader:
        first, frames = dict(reader.holds), list(reader)
    with write_chunk_file("p.loci", **first | {key: value}) as writer:
        for kind, arrays in frames:
            writer.write(packed_chunk(kind, **arrays))
    name, *arguments = OF_PAIRS
    done = run_here(name, *arguments, "-o", "o.bam", folder=tmp_path)
    assert done.rc == 1
    assert done.last_line == (
        f"{name}.py: error: p.loci: written by another version of bwarp: make it again"
    )


@pytest.mark.parametrize("how", ["cut off", "not gzip", "flipped"])
def test_a_table_that_is_not_gzip(folder, tmp_path, how):
    for name in ("o.over.tsv", "o.skipped.tsv", "o.stats.json"):
        shutil.copy(folder / name, tmp_path)
    path = tmp_path / "o.tsv.gz"
    packed = gzip.compress((folder / "o.tsv").read_bytes())
    broken = {
        "cut off": packed[:-9],
        "not gzip": b"x" + packed,
        "flipped": packed[:-6] + b"\0\0" + packed[-4:],
    }
    path.write_bytes(broken[how])
    before = sorted(os.listdir(tmp_path))
    done = run_here(
        "merge_loci", tmp_path / "o.tsv.gz", "-o", tmp_path / "m.tsv.gz", folder=tmp_path
    )
    assert (done.rc, done.left) == (1, before)
    assert done.last_line.startswith(
        f"merge_loci.py: error: {path}: the compressed file is damaged ("
    )
