"""Damage to files that bwarp wrote: flipped bits, truncation, missing, swapped or empty files.

Each program rejects the file with a sentence that names it, or does not need the damaged part and
writes the same bytes as before. For more examples: BWARP_EXAMPLES=2000 pytest tests/hostile
"""

import itertools
import json
import os
import random
import shutil
from pathlib import Path

import pytest

from tests.helpers.programs.programs_here import run_here

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))

GENOME = b">one\nACGTTGCAACGGTATCGGATATCGCCTTAGGCATCGATTAGCAGCATCGGATCCGGTTAACNNNN\n>two\nACGATCG\n"
READS = b"@a\nACGGTATCGGATATCGCCTTAGGCATCGATTAG\n+\n%b\n@b\nTTAACCGGATCCGATGCTGC\n+\n%b\n" % (
    b"I" * 33,
    b"I" * 20,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write intact outputs of the programs."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "g.fa").write_bytes(GENOME)
    (folder / "r.fq").write_bytes(READS)
    (folder / "p.fa").write_bytes(b">p\nMKVLAAGIVGLLLAQWERTY\n>q\nMKVLAAG\n")
    batch = ("--index", folder / "i", "--reads", folder / "b/0.reads")
    for name, *arguments in (
        ("index_reference", folder / "g.fa", "-o", folder / "i", "--prefix-length", 2,
         "--with-reverse"),
        ("batch_reads", "-1", folder / "r.fq", "-o", folder / "b"),
        ("seed_reads", *batch, "-o", folder / "seeds", "--edits", 2),
        ("locate_seeds", "--index", folder / "i", "--seeds", folder / "seeds",
         "-o", folder / "hits"),
        ("extend_candidates", *batch, "--candidates", folder / "hits", "-o", folder / "loci"),
        ("index_database", folder / "p.fa", "-o", folder / "d"),
        ("map_reads", "--index", folder / "i", "-1", folder / "r.fq", "-o", folder / "u.bam",
         "--sort", "--stats", folder / "u.stats.json"),
    ):  # fmt: skip
        done = run_here(name, *arguments, folder=folder)
        assert done.rc == 0, done.said
    return folder


PROGRAMS = {
    "i": [
        ("index_reference", "--verify", "-o", "DAMAGED"),
        ("find_mems", "--index", "DAMAGED", "--queries", "r.fq", "-o", "OUT/o.mums", "-l", 12),
        ("find_seeds", "--index", "DAMAGED", "--queries", "r.fq", "-o", "OUT/o.tsv", "-k", 10,
         "--mismatches", 1),
        ("map_reads", "--index", "DAMAGED", "-1", "r.fq", "-o", "OUT/o.sam"),
        ("locate_seeds", "--index", "DAMAGED", "--seeds", "seeds", "-o", "OUT/o.hits"),
    ],
    "d": [("search_database", "--queries", "p.fa", "--database", "DAMAGED", "-o", "OUT/o.tsv")],
    "seeds": [("locate_seeds", "--index", "i", "--seeds", "DAMAGED", "-o", "OUT/o.hits")],
    "hits": [
        ("filter_candidates", "--index", "i", "--reads", "b/0.reads", "--hits", "DAMAGED",
         "-o", "OUT/o.candidates"),
        ("extend_candidates", "--index", "i", "--reads", "b/0.reads", "--candidates", "DAMAGED",
         "-o", "OUT/o.loci"),
    ],
    "loci": [
        ("write_alignments", "--index", "i", "--reads", "b/0.reads", "--loci", "DAMAGED",
         "-o", "OUT/o.bam"),
    ],
    "u.stats.json": [("merge_alignments", "u.bam", "-o", "OUT/o.bam")],
    "u.bam": [("merge_alignments", "DAMAGED", "-o", "OUT/o.bam")],
}  # fmt: skip


def damage(path: Path, chance: random.Random) -> str:
    """Damage one file in a random way; return a description."""
    whole = path.read_bytes()
    kind = chance.choice(
        ["flip", "flip", "flip", "cut", "empty", "gone", "longer", "zeros", "text"]
    )
    at = chance.randrange(len(whole))
    if kind == "flip":
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << chance.randrange(8)]) + whole[at + 1 :]
        )
    elif kind == "cut":
        path.write_bytes(whole[:at])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "gone":
        path.unlink()
    elif kind == "longer":
        path.write_bytes(whole + b"\0" * 64)
    elif kind == "zeros":
        path.write_bytes(whole[:at] + b"\0" * (len(whole) - at))
    else:
        path.write_bytes(b"{}\n")
    return f"{kind} at {at}"


@pytest.mark.parametrize("what", PROGRAMS)
def test_damage_is_refused_or_does_no_harm(folder, tmp_path, what):
    chance = random.Random(what)
    output = tmp_path / "out"
    copy = tmp_path / what
    beside = [folder / "u.stats.json"] if what == "u.bam" else []

    def run(name, *arguments):
        output.mkdir()
        files = {"DAMAGED": copy}
        words = [
            files.get(word)
            or (output / word.removeprefix("OUT/") if str(word).startswith("OUT/") else None)
            or ((tmp_path if (tmp_path / word).exists() else folder) / word
                if (folder / str(word)).exists() else word)
            for word in map(str, arguments)
        ]  # fmt: skip
        done = run_here(name, *words, folder=output)
        written = {path.name: path.read_bytes() for path in sorted(output.iterdir())}
        shutil.rmtree(output)
        return done, written

    def restore():
        for path in (folder / what, *beside):
            to = tmp_path / path.name
            shutil.rmtree(to) if to.is_dir() else to.unlink(missing_ok=True)
            shutil.copytree(path, to) if path.is_dir() else shutil.copy(path, to)
        if what == "u.stats.json":
            shutil.copy(folder / "u.bam", tmp_path / "u.bam")

    restore()
    right = [run(*command) for command in PROGRAMS[what]]
    assert [done.rc for done, _ in right] == [0] * len(right), right
    refused = 0
    for _ in range(EXAMPLES):
        restore()
        files = sorted(copy.iterdir()) if copy.is_dir() else [copy]
        file = chance.choice(files)
        how = f"{file.name}: {damage(file, chance)}"
        number = chance.randrange(len(PROGRAMS[what]))
        done, written = run(*PROGRAMS[what][number])
        assert "Traceback" not in done.said, how
        if done.rc == 0:
            harmless = dict(right[number][1])
            if what == "u.stats.json":
                # Counts without a checksum: a digit may change.
                del written["o.stats.json"], harmless["o.stats.json"]
            assert written == harmless, how
        else:
            assert done.rc in (1, 2), how
            assert written == {}, how
            assert str(tmp_path / what) in done.last_line, (how, done.last_line)
            refused += 1
    assert refused > EXAMPLES // 3


@pytest.mark.parametrize("what", ["i", "d"])
def test_arrays_of_other_names_are_refused(folder, tmp_path, what):
    copy = tmp_path / what
    arrays = sorted(path.name for path in (folder / what).glob("*.npy"))
    for one, two in itertools.pairwise(arrays):
        shutil.copytree(folder / what, copy)
        (copy / one).rename(copy / "kept")
        (copy / two).rename(copy / one)
        (copy / "kept").rename(copy / two)
        command = ("index_reference", "--verify", "-o", copy)
        if what == "d":
            queries, output = folder / "p.fa", tmp_path / "o.tsv"
            command = ("search_database", "--queries", queries, "--database", copy, "-o", output)
        done = run_here(*command, folder=tmp_path)
        same = (copy / one).read_bytes() == (copy / two).read_bytes()
        assert done.rc == (0 if same else 1), (one, two)
        if not same:
            assert str(copy) in done.last_line
            assert "again" in done.last_line
        shutil.rmtree(copy)
        (tmp_path / "o.tsv").unlink(missing_ok=True)


def test_a_description_of_missing_arrays(folder, tmp_path):
    shutil.copytree(folder / "d", tmp_path / "d")
    path = tmp_path / "d/database.json"
    for change in (
        {"files": []},
        {"files": {"codes.npy": {}}},
        {"files": {}},
        {"files": {"../../etc/passwd": {"bytes": 1, "crc32": "0"}}},
        {"format": "bwarp index"},
    ):
        path.write_text(json.dumps(json.loads((folder / "d/database.json").read_text()) | change))
        command = ("--queries", folder / "p.fa", "--database", tmp_path / "d", "-o", tmp_path / "o")
        done = run_here("search_database", *command, folder=tmp_path)
        assert done.rc == 1, change
        assert done.last_line == (
            f"search_database.py: error: {path}: the file is damaged: make it again with bwarp "
            "search-index"
        ), change


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"reads": 1}', '{"reads": "many"}', "\x00"])
def test_invalid_counts(folder, tmp_path, text):
    shutil.copy(folder / "u.bam", tmp_path)
    (tmp_path / "u.stats.json").write_text(text)
    command = (tmp_path / "u.bam", "-o", tmp_path / "o.bam")
    done = run_here("merge_alignments", *command, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["u.bam", "u.stats.json"])
    assert done.last_line == (
        f"merge_alignments.py: error: {tmp_path}/u.stats.json: not statistics of bwarp map: map "
        "these reads again"
    )
