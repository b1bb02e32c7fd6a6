"""scripts/filter_candidates.py: what it keeps and counts, and its one-line errors."""

import json

import numpy as np
import pytest

from bwarp.filtering import filter_cpu
from bwarp.filtering.candidates import Candidates
from bwarp.sequence import decode, pack
from tests.helpers.oracles.filter_oracle import mutated_candidates


@pytest.fixture(scope="module")
def stage(tmp_path_factory, run_program):
    """A folder with an index, reads and candidates, half of them nonsense; and the sequences."""
    folder = tmp_path_factory.mktemp("stage")
    rng = np.random.default_rng(8)
    genome = rng.integers(0, 4, 4000).astype(np.uint8)
    (folder / "g.fa").write_bytes(b">g\n" + decode(genome) + b"\n")
    done = run_program("index_reference.py", "g.fa", "-o", "g.index", cwd=folder)
    assert done.rc == 0, done.stderr
    packed, starts, candidates = mutated_candidates(rng, genome, 400, 150, most_edits=3)
    shift = np.where(rng.random(400) < 0.5, rng.integers(0, 900, 400), 0)
    shift = np.minimum(shift, genome.size - candidates.stops)
    arrays = {
        "reads": candidates.reads,
        "strands": candidates.strands,
        "starts": candidates.starts + shift,
        "stops": candidates.stops + shift,
        "max_edits": candidates.max_edits,
    }
    np.savez(folder / "reads.npz", packed=packed, starts=starts)
    np.savez(folder / "c.npz", **arrays)
    return folder, (packed, starts, pack(genome)), arrays


def run(run_program, folder, *arguments, candidates="c.npz", reads="reads.npz"):
    files = ("--index", "g.index", "--reads", reads, "--candidates", candidates)
    return run_program(
        "filter_candidates.py", *files, "-o", "out.npz", "--backend", "cpu", *arguments, cwd=folder
    )


@pytest.mark.parametrize("word_length", [0, 4])
def test_what_is_kept_is_what_the_library_keeps(stage, run_program, word_length):
    folder, sequences, arrays = stage
    done = run(run_program, folder, "--kmer-length", word_length)
    assert done.rc == 0, done.stderr
    found = filter_cpu.filter_candidates(*sequences, Candidates(**arrays), word_length, 1)
    with np.load(folder / "out.npz") as out:
        for name, array in arrays.items():
            assert out[name].tolist() == array[found.kept].tolist()
        assert out["edits"].tolist() == found.edits[found.kept].tolist()
    statistics = json.loads((folder / "out.stats.json").read_text())
    assert statistics == {
        "candidates": 400,
        "dropped_by_bases": found.dropped_by_bases,
        "dropped_by_kmers": found.dropped_by_kmers,
        "kept": int(found.kept.sum()),
    }
    assert 150 < statistics["kept"] < 400


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reads": None}, "bad.npz: has no array 'reads': write it again"),
        ({"starts": np.zeros(400)}, "bad.npz: 'starts' must be 1-d int64, not 1-d float64: "
         "write it again"),
        ({"strands": np.zeros(3, np.uint8)}, "bad.npz: the arrays differ in length: "
         "write it again"),
        ({"reads": np.full(400, 400)}, "bad.npz: candidate 0 (read 400, window "),
        ({"stops": np.full(400, 4001)}, " to 4001) does not lie within the 400 reads and the "
         "4,000 bases of the genome, or is longer than 65,535"),
    ],
)  # fmt: skip
def test_wrong_candidates(stage, run_program, change, message):
    folder, _, arrays = stage
    arrays = {k: v for k, v in (arrays | change).items() if v is not None}
    np.savez(folder / "bad.npz", **arrays)
    done = run(run_program, folder, candidates="bad.npz")
    assert done.rc == 1
    assert message in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ([], "'starts' must ascend from 0 on: write it again"),
        ([0, 5, 3], "'starts' must ascend from 0 on: write it again"),
        ([0, 65], "'packed' ends before the last read does: write it again"),
    ],
)
def test_unusable_reads(stage, run_program, starts, message):
    folder, _, _ = stage
    packed = np.zeros(3, np.uint64)
    np.savez(folder / "bad_reads.npz", packed=packed, starts=np.array(starts, np.int64))
    done = run(run_program, folder, reads="bad_reads.npz")
    assert done.rc == 1
    assert done.stderr.splitlines()[-1] == (
        f"filter_candidates.py: error: bad_reads.npz: {message}"
    )


def test_wrong_files_and_options(stage, run_program):
    folder, _, _ = stage
    (folder / "text.npz").write_text("no arrays")
    done = run(run_program, folder, reads="text.npz")
    assert done.rc == 1
    assert done.stderr.splitlines()[-1] == (
        "filter_candidates.py: error: text.npz: is no .npz file, or a damaged one: write it again"
    )
    done = run(run_program, folder, "-o", "out.txt")
    assert done.rc == 2
    assert done.stderr.splitlines()[-1] == (
        "filter_candidates.py: error: out.txt: the ending must be .npz"
    )
