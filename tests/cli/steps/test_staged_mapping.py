"""chunk_reads.py to write_alignments.py in a row write what map_reads.py writes."""

import shutil

import pytest

from bwarp.index.store import save_index
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.programs.refusal import refusal

GROUP = ("--read-group", r"@RG\tID:g1\tSM:s")


@pytest.fixture(scope="module")
def folder(run_program, tmp_path_factory):
    """A genome, its index, and pairs whose headers have comments."""
    folder = tmp_path_factory.mktemp("staged")

    def run(script, *arguments):
        done = run_program(script, *arguments, cwd=folder)
        assert done.rc == 0, done.stderr

    run("simulate_genome.py", "-o", "genome.fa", "--length", 30_000, "--contigs", 2, "--seed", 3)
    run("index_reference.py", "genome.fa", "-o", "index", "--backend", "cpu")
    reads = ("--reference", "genome.fa", "--variant-rate", 0.005, "--seed", 5)
    run("simulate_reads.py", *reads, "-1", "1.fq", "-2", "2.fq", "--pairs", 400)
    for name in ("1.fq", "2.fq"):
        lines = (folder / name).read_text().splitlines()
        lines[::4] = [f"{line} BC:Z:{name}{i}" for i, line in enumerate(lines[::4])]
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def stages(run_program, folder):
    """A function that runs the stages, with some options for the second and the last of them."""

    def run(reads, alignment, output) -> str:
        index = ("--index", "index")
        for command in (
            ("chunk_reads.py", *reads, "-o", "reads"),
            ("seed_chunks.py", *index, "--reads", "reads", "-o", "rows", *alignment),
            ("locate_chunks.py", *index, "--rows", "rows", "-o", "candidates"),
            ("extend_candidates.py", *index, "--reads", "reads", "--candidates", "candidates",
             "-o", "hits"),
            ("write_alignments.py", *index, "--reads", "reads", "--hits", "hits", *output),
        ):  # fmt: skip
            done = run_program(*command, "--threads", 2, cwd=folder)
            assert (done.rc, done.stdout) == (0, ""), done.stderr
        return done.stderr

    return run


@pytest.mark.parametrize(
    ("reads", "alignment", "output", "ending"),
    [
        (("-1", "1.fq", "-2", "2.fq"), (), ("--sort", "--mark-duplicates"), "bam"),
        (("-1", "2.fq"), ("--mode", "end-to-end", "--match", 2), ("--comments", *GROUP), "sam"),
    ],
)
def test_the_stages_are_one_run(run_program, folder, stages, reads, alignment, output, ending):
    def written(name) -> tuple:
        return f"-o{name}.{ending}", "--stats", f"{name}.json", *output

    one = ("map_reads.py", "--index", "index", *reads, *alignment, *written("one"))
    done = run_program(*one, "--backend", "cpu", cwd=folder)
    assert done.rc == 0, done.stderr
    assert stages(reads, alignment, written("staged")) == done.stderr
    for name in (ending, "json"):
        staged, one = (folder / f"{run}.{name}" for run in ("staged", "one"))
        assert staged.read_bytes() == one.read_bytes()


def test_what_is_not_what_is_asked_for(checkout, monkeypatch, capsys, folder, stages, tmp_path):
    stages(("-1", "1.fq"), (), ("-o", "some.sam"))
    save_index(index_of([b"ACGTTGCA" * 9]), tmp_path / "other")
    output = tmp_path / "out.sam"
    steps = {
        "seed_chunks.py": [("reads", "reads", "chunk_reads.py")],
        "locate_chunks.py": [("rows", "seed rows", "seed_chunks.py")],
        "extend_candidates.py": [
            ("reads", "reads", "chunk_reads.py"), ("candidates", "candidates", "locate_chunks.py")
        ],
        "write_alignments.py": [
            ("reads", "reads", "chunk_reads.py"), ("hits", "scored hits", "extend_candidates.py")
        ],
    }  # fmt: skip

    def refused(script, files, index=folder / "index") -> str:
        arguments = ["--index", index, "-o", output]
        arguments += [word for name, path in files.items() for word in (f"--{name}", path)]
        rc, said = refusal(checkout / "scripts" / script, arguments, monkeypatch, capsys)
        assert (rc, output.exists()) == (1, False)
        return said.removeprefix(f"{script}: error: ").removesuffix("\n")

    for script, inputs in steps.items():
        files = {name: folder / name for name, _, _ in inputs}
        for name, kind, maker in inputs:
            short = tmp_path / "short"
            short.write_bytes((folder / name).read_bytes()[:-50])
            assert refused(script, files | {name: short}) == (
                f"{short}: the file is damaged or cut off: make it again"
            )
            wrong = folder / ("hits" if name == "reads" else "reads")
            assert refused(script, files | {name: wrong}) == (
                f"{wrong}: not a file of {kind}: make one with scripts/{maker}"
            )
        name, kind, maker = inputs[-1]
        if kind != "reads":
            assert refused(script, files, tmp_path / "other") == (
                f"{folder / name}: these {kind} were found in another index than "
                f"{tmp_path / 'other'}: give that one, or find them again with scripts/{maker}"
            )
    shutil.rmtree(tmp_path / "other")
