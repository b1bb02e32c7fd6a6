"""bwarp map --mark-duplicates on a GPU writes the files of the CPU."""

import json

import pysam
import pytest

from tests.helpers.programs.mapped_reads import SCRIPT

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def reads(folder):
    """Return files with pairs, some of them twice; half of the copies have other qualities."""
    paths = []
    for end in (1, 2):
        lines = (folder / f"{end}.fq").read_text().splitlines()
        for number in range(0, 4 * 600, 4):
            name, bases, plus, qualities = lines[number : number + 4]
            qualities = "#" * len(qualities) if number % 8 else qualities
            lines += [f"@copy.{name[1:]}", bases, plus, qualities]
        paths.append(folder / f"twice{end}.fq")
        paths[-1].write_text("\n".join([*lines, ""]))
    return paths


@pytest.fixture
def mapped(run_program, folder, reads, tmp_path):
    def run(backend: str, output: str, *more) -> dict[str, bytes]:
        place = tmp_path / backend
        place.mkdir(exist_ok=True)
        done = run_program(
            SCRIPT, "--index", folder / "index", *more, "-o", place / output, "--sort",
            "--mark-duplicates", "--stats", place / "stats.json",
            "--duplicate-metrics", place / "metrics.txt", "--backend", backend,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        return {path.name: path.read_bytes() for path in place.iterdir()}

    return run


@pytest.mark.parametrize("output", ["out.bam", "out.cram", "out.sam"])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("options", [(), ("--duplicate-tags",), ("--duplicate-tags", "--comments")])
def test_files_are_those_of_the_cpu(mapped, reads, output, single, options):
    more = ["-1", reads[0]] if single else ["-1", reads[0], "-2", reads[1]]
    more += options
    more += ["--compress", "host"] if output == "out.bam" else []
    expected = mapped("cpu", output, *more)
    found = mapped("cuda", output, *more)
    assert found == expected
    assert json.loads(found["stats.json"])["duplicates"] > 500


def test_blocks_of_the_gpu_hold_the_same_records(mapped, reads, tmp_path):
    for backend in ("cpu", "cuda"):
        mapped(backend, "out.bam", "-1", reads[0], "-2", reads[1])
    lines = [
        pysam.view("--no-PG", "-h", str(tmp_path / backend / "out.bam"))
        for backend in ("cpu", "cuda")
    ]
    assert lines[0] == lines[1]
    pysam.quickcheck(str(tmp_path / "cuda" / "out.bam"))
