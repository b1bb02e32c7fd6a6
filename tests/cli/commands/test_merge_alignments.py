"""bwarp merge: units become a sample with all reads and counts."""

import json
import os

import pysam
import pytest

from bwarp.cli.commands import merge_alignments
from bwarp.records.statistics import empty_statistics

SCRIPT = "merge_alignments.py"
HEADER = {"HD": {"VN": "1.6", "SO": "coordinate"}, "SQ": [{"SN": "chr1", "LN": 1000}]}


@pytest.fixture
def units(tmp_path):
    """Write two sorted BAM files of three reads each, with their counts."""
    paths = []
    for unit in ("1", "2"):
        path = tmp_path / f"{unit}.bam"
        header = HEADER | {"RG": [{"ID": f"s.{unit}", "SM": "s"}]}
        with pysam.AlignmentFile(path, "wb", header=header) as file:
            for number in range(3):
                record = pysam.AlignedSegment(file.header)
                record.query_name = f"{unit}-{number}"
                record.query_sequence = "ACGT"
                record.reference_id = 0
                record.reference_start = 100 * number + int(unit)
                record.cigarstring = "4M"
                record.set_tag("RG", f"s.{unit}")
                file.write(record)
        counts = empty_statistics() | {"reads": 3, "mapped": 3, "insert_size": {"mean": 1.5}}
        counts["mapping_qualities"][60] = 3
        counts["stages"]["hits scored"] = 5
        (tmp_path / f"{unit}.stats.json").write_text(json.dumps(counts))
        paths.append(path)
    return paths


def test_units_become_a_sample(run_program, units, tmp_path):
    output = tmp_path / "new" / "s.bam"
    output.parent.mkdir()
    done = run_program(SCRIPT, *units, "-o", output)
    assert done == (0, "", f"{output}: 2 units merged\n")
    assert sorted(os.listdir(output.parent)) == ["s.bam", "s.bam.bai", "s.stats.json"]
    with pysam.AlignmentFile(output) as file:
        assert [group["ID"] for group in file.header.to_dict()["RG"]] == ["s.1", "s.2"]
        names = [(record.query_name, record.get_tag("RG")) for record in file.fetch("chr1")]
    assert names == [(f"{unit}-{n}", f"s.{unit}") for n in range(3) for unit in (1, 2)]
    statistics = json.loads((output.parent / "s.stats.json").read_text())
    assert (statistics["reads"], statistics["mapped"], statistics["unmapped"]) == (6, 6, 0)
    assert statistics["mapping_qualities"][60] == 6
    assert statistics["stages"]["hits scored"] == 10
    assert statistics["units"]["2"]["insert_size"] == {"mean": 1.5}
    assert statistics["duplicates"] is None


def test_duplicates_across_units(run_program, units, tmp_path):
    (tmp_path / "again.stats.json").write_bytes((tmp_path / "1.stats.json").read_bytes())
    # Reads of different read groups may have the same name.
    with pysam.AlignmentFile(units[0]) as file:
        header = file.header.to_dict() | {"RG": [{"ID": "s.3", "SM": "s"}]}
        with pysam.AlignmentFile(tmp_path / "again.bam", "wb", header=header) as again:
            for record in file:
                record.set_tag("RG", "s.3")
                again.write(record)
    output = tmp_path / "new" / "s.bam"
    output.parent.mkdir()
    done = run_program(SCRIPT, *units, tmp_path / "again.bam", "-o", output, "--mark-duplicates")
    assert done == (0, "", f"{output}: 3 units merged, 3 duplicates\n")
    statistics = json.loads((output.parent / "s.stats.json").read_text())
    assert statistics["duplicates"] == 3
    with pysam.AlignmentFile(output) as file:
        marked = [(record.query_name, record.is_duplicate) for record in file.fetch("chr1")]
    expected = [[(f"1-{n}", False), (f"1-{n}", True), (f"2-{n}", False)] for n in range(3)]
    assert marked == sum(expected, [])


@pytest.mark.parametrize("fails", [False, True])
def test_no_output_appears_without_the_others(units, tmp_path, monkeypatch, fails):
    output = tmp_path / "new" / "s.bam"
    output.parent.mkdir()
    words = [
        *units, "-o", output, "--mark-duplicates", "--duplicate-metrics", output.parent / "m.txt",
        "--qc", output.parent / "qc",
    ]  # fmt: skip
    options = merge_alignments.parse_options().parse_args(list(map(str, words)))
    if not fails:
        merge_alignments.main(options)
        assert sorted(os.listdir(output.parent)) == [
            "m.txt", "qc", "s.bam", "s.bam.bai", "s.stats.json"
        ]  # fmt: skip
        assert len(os.listdir(output.parent / "qc")) == 5
        return

    def fail(*_):
        raise KeyError

    monkeypatch.setattr(merge_alignments, "put_in_place", fail)
    with pytest.raises(KeyError):
        merge_alignments.main(options)
    assert os.listdir(output.parent) == []


def test_refusals_leave_nothing(run_program, units, tmp_path):
    output = tmp_path / "new" / "s.bam"
    output.parent.mkdir()
    done = run_program(SCRIPT, *units, "-o", tmp_path / "s.sam")
    assert done == (
        2, "", f"merge_alignments.py: error: {tmp_path}/s.sam: the output must end in .bam or "
        ".cram\n",
    )  # fmt: skip
    other = tmp_path / "lane" / "1.bam"
    done = run_program(SCRIPT, *units, other, "-o", output)
    assert done == (
        2, "", f"merge_alignments.py: error: {other}: an earlier unit is also named 1: rename "
        "one\n",
    )  # fmt: skip
    units[1].write_bytes(units[1].read_bytes()[:100])
    done = run_program(SCRIPT, *units, "-o", output)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == (
        f"merge_alignments.py: error: {units[1]}: the file is truncated: write it again\n"
    )
    assert os.listdir(output.parent) == []
    (tmp_path / "1.stats.json").unlink()
    done = run_program(SCRIPT, *units, "-o", output)
    assert done == (
        1, "", f"merge_alignments.py: error: {tmp_path}/1.stats.json: no such file or folder: "
        "check the path\n",
    )  # fmt: skip
