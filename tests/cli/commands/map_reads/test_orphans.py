"""bwarp map --interleaved: pairs and orphans in one file, as for bwa mem -p."""

import json
import re
import shutil
import subprocess

import pytest

from bwarp.index.store import load_index
from bwarp.mapping.engine import load
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads.read_chunks import interleaved_chunks
from bwarp.records.alignment_records import ReadAlignments
from bwarp.records.record_layout import alignment_records
from tests.helpers.programs.mapped_reads import records


@pytest.fixture(scope="module")
def mixed(folder):
    """Return pairs; every fifth has lost its second read, and every seventh its first."""
    both = [(folder / f"{end}.fq").read_text().splitlines(keepends=True) for end in (1, 2)]
    text = ""
    for number in range(len(both[0]) // 4):
        for end, lines in enumerate(both):
            if number % (5, 7)[1 - end] != 3:
                text += "".join(lines[4 * number : 4 * number + 4])
    (folder / "mixed.fq").write_text(text)
    return folder / "mixed.fq"


@pytest.fixture(scope="module")
def sam(run_program, folder, mixed):
    done = run_program(
        "map_reads.py", "--index", "index", "-1", mixed, "--interleaved", "-o", "mixed.sam",
        "--stats", "mixed.json", "--backend", "cpu", "--threads", 1, cwd=folder,
    )  # fmt: skip
    assert done.rc == 0
    return folder / "mixed.sam", done.stderr


def test_orphans_are_mapped_as_single_reads(folder, mixed, sam):
    path, said = sam
    names = [line[1:].split()[0] for line in mixed.read_text().splitlines()[::4]]
    names = [re.sub("/[12]$", "", name) for name in names]
    found = [record for record in records(path) if not record.is_supplementary]
    assert [record.query_name for record in found] == names
    n_orphans = 0
    for number, record in enumerate(found):
        alone = names[number] not in (names[max(number - 1, 0)], *names[number + 1 : number + 2])
        alone |= number == 0 and names[0] != names[1]
        assert record.is_paired == (not alone)
        n_orphans += alone
        if alone:
            assert record.flag & ~0x14 == 0
            assert record.next_reference_id == -1
            assert not record.has_tag("MC")
    assert n_orphans > 300
    assert f"{n_orphans:,} reads have no mate and were mapped as single" in said
    statistics = json.loads((folder / "mixed.json").read_text())
    assert statistics["reads"] == len(found) == statistics["stages"]["reads"]
    assert statistics["paired"] == len(found) - n_orphans
    assert statistics["mapped"] + statistics["unmapped"] == len(found)
    assert sum(statistics["mapping_qualities"]) == statistics["mapped"]


def test_chunks_and_threads_change_nothing(folder, mixed, sam, map_reads):
    index = load_index(folder / "index")
    engine = load(index, MappingParameters(), threads=2)

    def rows(size):
        lines = []
        for done in engine.map(interleaved_chunks(mixed, size, 2)):
            found = ReadAlignments(done.mapped, done.primary, done.supplementary, done.secondary)
            table = alignment_records(engine.genome.contig_starts, done.chunk, found)
            columns = (
                table.flags,
                table.positions,
                table.mapping_qualities,
                table.template_lengths,
            )
            lines += zip(*(column.tolist() for column in columns), strict=True)
        return lines

    assert rows(128) == rows(301) == rows(1 << 16)
    done = map_reads("-1", mixed, "--interleaved", "-o", "-", "--threads", 4)
    assert done.stdout == sam[0].read_text()


@pytest.mark.skipif(shutil.which("bwa") is None, reason="needs bwa")
def test_pairs_are_those_of_bwa(folder, mixed, sam, tmp_path):
    shutil.copy(folder / "genome.fa", tmp_path)
    subprocess.run(["bwa", "index", "genome.fa"], cwd=tmp_path, check=True, capture_output=True)
    command = ["bwa", "mem", "-p", "-o", "bwa.sam", "genome.fa", mixed]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    ours, theirs = (
        [r for r in records(path) if not r.is_supplementary]
        for path in (sam[0], tmp_path / "bwa.sam")
    )
    kinds = [[(r.query_name, r.flag & 0xC1) for r in lines] for lines in (ours, theirs)]
    assert kinds[0] == kinds[1]
    same = sum(
        (a.reference_id, a.reference_start, a.flag) == (b.reference_id, b.reference_start, b.flag)
        for a, b in zip(ours, theirs, strict=True)
        if b.mapping_quality >= 30
    )
    assert same >= 0.999 * sum(r.mapping_quality >= 30 for r in theirs)


def test_several_files_and_single_reads(folder, map_reads, tmp_path):
    """The output is the same as for the concatenated files."""
    parts = {}
    for end in "12":
        lines = (folder / f"{end}.fq").read_text().splitlines(keepends=True)
        for name, some in (("a", lines[:804]), ("b", lines[804:])):
            parts[name + end] = tmp_path / f"{name}{end}.fq"
            parts[name + end].write_text("".join(some))
    firsts, seconds = ([parts[name + end] for name in "ab"] for end in "12")
    single = folder / "single.fq.gz"
    joined = map_reads("-1", folder / "1.fq", "-2", folder / "2.fq", "-U", single, "-o", "-")
    assert joined.rc == 0, joined.stderr
    assert "1,000 reads have no mate and" in joined.stderr
    found = map_reads("-1", *firsts, "-2", *seconds, "-U", single, "-o", "-", "-t", 3)
    assert (found.stdout, found.stderr) == (joined.stdout, joined.stderr)
    mixed = tmp_path / "mixed.fq"
    lines = [(folder / f"{end}.fq").read_text().splitlines(keepends=True) for end in "12"]
    with open(mixed, "w") as file:
        for i in range(0, len(lines[0]), 4):
            file.writelines([*lines[0][i : i + 4], *lines[1][i : i + 4]])
    found = map_reads("-1", mixed, "-p", "--single", single, "-o", "-", "-t", 1)
    assert (found.stdout, found.stderr) == (joined.stdout, joined.stderr)
