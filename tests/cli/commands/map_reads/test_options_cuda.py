"""bwarp map with any option writes the files of the CPU on a GPU, which finishes most reads."""

import json

import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, contigs_of

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def reads(run_program, folder):
    """Write the reads of the folder in other forms: with comments, orphans and long reads."""
    ends = []
    for end in (1, 2):
        lines = (folder / f"{end}.fq").read_text().splitlines()
        for number in range(0, len(lines), 4):
            name, _, _ = lines[number].partition(" ")
            lines[number] = f"{name} RX:Z:{'ACGT'[number // 4 % 4]}ACGT\tXF:f:0.25\tXI:i:{number}"
        ends.append(lines)
        (folder / f"umi{end}.fq").write_text("\n".join([*lines, ""]))
    both = []
    for number in range(0, len(ends[0]), 4):
        both += ends[0][number : number + 4]
        both += ends[1][number : number + 4] if number % 28 else []
    (folder / "orphans.fq").write_text("\n".join([*both, ""]))
    long = ("-1", "long1.fq", "-2", "long2.fq", "--pairs", 200, "--read-length", 900)
    done = run_program(
        "simulate_reads.py", "--reference", "genome.fa", *long, "--insert-mean", 2000, cwd=folder
    )
    assert done.rc == 0, done.stderr
    lengths = {name: len(letters) for name, letters in contigs_of(folder / "genome.fa").items()}
    beds = (f"{name}\t{length // 4}\t{length // 2}\n" for name, length in lengths.items())
    (folder / "regions.bed").write_text("".join(beds))
    return {
        "pairs": ("-1", folder / "umi1.fq", "-2", folder / "umi2.fq"),
        "single": ("-1", folder / "umi1.fq"),
        "orphans": ("-1", folder / "orphans.fq", "--interleaved"),
        "merged": (
            *("-1", folder / "umi1.fq", "-2", folder / "umi2.fq"),
            *("-U", folder / "single.fq.gz"),
        ),
        "long": ("-1", folder / "long1.fq", "-2", folder / "long2.fq"),
    }


@pytest.fixture
def mapped(run_program, folder, tmp_path):
    def run(backend: str, output: str, *more) -> dict[str, bytes]:
        place = tmp_path / backend
        place.mkdir(exist_ok=True)
        done = run_program(
            SCRIPT, "--index", folder / "index", *more, "-o", place / output,
            "--stats", place / "stats.json", "--compress", "host", "--backend", backend,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        return {path.name: path.read_bytes() for path in place.iterdir()}

    return run


OPTIONS = {
    "nothing": (),
    "comments": ("-C", "-R", r"@RG\tID:1\tSM:s"),
    "UMIs": ("-C", "--mark-duplicates", "--barcode-tag", "RX"),
    "ALT": ("--alt", "copies", "-C"),
    "ALT and all": ("--alt", "copies", "--all", "--soft-clip"),
    "Hi-C": ("--hic",),
    "all": ("--all", "--max-secondary", 3),
    "eqx": ("--eqx", "--soft-clip"),
    "regions": ("--regions", "regions.bed", "--eqx", "--all"),
    "end-to-end": ("--mode", "end-to-end", "-C"),
}


@pytest.mark.parametrize("form", ["pairs", "single", "orphans", "merged", "long"])
@pytest.mark.parametrize("name", OPTIONS)
def test_sorted_bam_is_that_of_the_cpu(mapped, folder, reads, monkeypatch, form, name):
    options = [folder / word if word == "regions.bed" else word for word in OPTIONS[name]]
    if (name == "Hi-C" and form == "single") or ("-C" in options and form in ("merged", "long")):
        options = [word for word in options if word not in ("-C", "--hic", "--barcode-tag", "RX")]
    expected = mapped("cpu", "out.bam", *reads[form], "--sort", *options)
    found = mapped("cuda", "out.bam", *reads[form], "--sort", *options)
    assert found == expected
    assert json.loads(found["stats.json"])["mapped"] > 300


@pytest.mark.parametrize("output", ["out.bam", "out.sam", "out.paf"])
@pytest.mark.parametrize("form", ["pairs", "single", "orphans", "merged", "long"])
@pytest.mark.parametrize("name", ["nothing", "comments", "ALT and all", "eqx", "regions"])
def test_unsorted_files_are_those_of_the_cpu(mapped, folder, reads, output, form, name):
    left_out = {"-R", "--soft-clip"} if output == "out.paf" else set()
    options = [
        folder / word if word == "regions.bed" else word
        for word in OPTIONS[name]
        if word not in left_out and not (left_out and str(word).startswith("@RG"))
    ]
    if form in ("merged", "long"):
        options = [word for word in options if word != "-C"]
    expected = mapped("cpu", output, *reads[form], *options)
    assert mapped("cuda", output, *reads[form], *options) == expected


def test_the_gpu_finishes_the_reads(folder, reads, tmp_path, monkeypatch):
    """With every option, it leaves less than half of the reads to the host."""
    from dataclasses import replace

    from bwarp.index.store import load_index
    from bwarp.mapping import pipeline_cuda
    from bwarp.mapping.engine import load
    from bwarp.mapping.parameters import ALL, MappingParameters
    from bwarp.reads.read_chunks import paired_chunks
    from bwarp.records.alignment_file import write_mapped
    from bwarp.records.output_options import AlignmentOutput

    marked, finish_reads = [], pipeline_cuda.finish_reads

    def finish(*found):
        plain = finish_reads(*found)
        marked.extend(plain.marks.tolist())
        return plain

    monkeypatch.setattr(pipeline_cuda, "finish_reads", finish)
    index = load_index(folder / "index")
    alt = (index.reference.names.index("copies"),)
    parameters = MappingParameters(alt=alt, hic=True, secondary_records=ALL)
    engine = load(index, parameters, "cuda", 2)
    output = AlignmentOutput(
        str(tmp_path / "out.sam"), 1 << 20, comments=True, soft_clip=True, eqx=True,
        regions_file=str(folder / "regions.bed"),
    )  # fmt: skip
    chunks = paired_chunks(folder / "umi1.fq", folder / "umi2.fq")
    reference = replace(index.reference, alt=alt)
    statistics = write_mapped(engine, chunks, output, reference, lambda *_: None)
    assert len(marked) == statistics["reads"] == 3000
    assert sum(marked) < 1500
