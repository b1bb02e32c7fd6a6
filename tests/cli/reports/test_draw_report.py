"""The programs that count, draw and show results for the report."""

import json
import os

import pysam
import yaml

from bwarp.runtime.progress import compiling_took
from tests.helpers.cases.report_cases import MARKED, PAIRED, SINGLE, TRUTH
from tests.helpers.programs.refusal import refusal

INDEX_TABLE = """\
contigs 1   bases 9   segments 1   rows 10
occ_rate (q) 64   sa_rate (p) 4   prefix_length 0

part                         bytes   a base           paper   on a GPU
suffix array                    12    1.200               5   to locate there
packed genome                   15    1.500               -   yes
total                           27    2.700               5
"""


def test_pages_and_sections(run_program, tmp_path):
    for name, counts in (("a", PAIRED), ("b.2", SINGLE)):
        (tmp_path / f"{name}.stats.json").write_text(json.dumps(counts))
    (tmp_path / "a.json").write_text(json.dumps(TRUTH))
    (tmp_path / "i.txt").write_text(INDEX_TABLE)
    (tmp_path / "t.svg").write_text("<svg></svg>")
    (tmp_path / "map_reads").mkdir()
    (tmp_path / "map_reads/a.benchmark.tsv").write_text("s\th:m:s\n60.5\t0:01:00\n")
    (tmp_path / "map_reads/a.log").write_text(compiling_took(52.2) + "\n")
    done = run_program(
        "draw_report.py", "--statistics", "a.stats.json", "b.2.stats.json", "--truth", "a.json",
        "--index-sizes", "i.txt", "-o", "o.html", "--title", "Reads of mice", "--steps", "s.html",
        "--times", "map_reads/a.benchmark.tsv", "--timelines", "t.svg", "--multiqc", "sections",
        cwd=tmp_path,
    )  # fmt: skip
    assert done == (0, "", "")
    assert set(os.listdir(tmp_path / "sections")) == {
        "general_mqc.yaml", "mapping_quality_mqc.yaml", "depth_mqc.yaml", "insert_size_mqc.yaml",
        "bwarp_mqc_versions.yml",
    }  # fmt: skip
    section = yaml.safe_load((tmp_path / "sections/mapping_quality_mqc.yaml").read_text())
    assert list(section["data"]) == ["a", "b.2"]
    assert list(section["data"]["a"]) == list(range(61))
    assert "<h1>Reads of mice</h1>" in (tmp_path / "o.html").read_text()
    steps = (tmp_path / "s.html").read_text()
    # Without the time of compiling.
    assert "<title>map_reads: 8.3 s, 1 job</title>" in steps
    assert "<td>packed genome</td><td>15</td>" in steps
    assert 'alt="Timeline t.svg"' in steps
    # A folder of an earlier run is replaced.
    done = run_program(
        "draw_report.py", "--statistics", "b.2.stats.json", "-o", "o.html", "--multiqc", "sections",
        cwd=tmp_path,
    )  # fmt: skip
    assert done == (0, "", "")
    assert not (tmp_path / "sections/insert_size_mqc.yaml").exists()


def test_files_of_qc(run_program, tmp_path):
    """Depths, insert sizes and duplicates are theirs; damaged and missing ones are errors."""
    (tmp_path / "a.stats.json").write_text(json.dumps(MARKED))
    (tmp_path / "qc").mkdir()
    texts = {
        "a.stats": "SN\treads duplicated:\t50\t# comment\nIS\t499\t0\t0\nIS\t500\t40\t40\n",
        "a.mosdepth.summary.txt": "chrom\tlength\tbases\ntotal\t16500\t165000\n",
        "a.mosdepth.global.dist.txt": "chr1\t30\t1.00\ntotal\t30\t0.10\ntotal\t10\t0.98\n"
        "total\t1\t1.00\ntotal\t0\t1.00\n",
    }
    for name, text in texts.items():
        (tmp_path / "qc" / name).write_text(text)
    command = ("draw_report.py", "--statistics", "a.stats.json", "--qc", "qc", "-o", "o.html")
    assert run_program(*command, cwd=tmp_path) == (0, "", "")
    page = (tmp_path / "o.html").read_text()
    # Half the reference has no reads, so is not in the files.
    cells = (
        "1,250",
        "80.00",
        "72.00",
        "4.00",
        "68.00",
        "0.50",
        "2.00",
        "5.00",
        "50",
        "49",
        "5",
        "5",
    )
    assert "".join(f"<td>{cell}</td>" for cell in ("a", *cells, "505")) in page
    (tmp_path / "qc/a.mosdepth.summary.txt").write_text("nothing")
    rc, _, said = run_program(*command, cwd=tmp_path)
    assert (rc, said) == (
        1, "draw_report.py: error: qc/a.*: not the files of bwarp map --qc: map the reads again\n"
    )  # fmt: skip
    (tmp_path / "qc/a.stats").unlink()
    rc, _, said = run_program(*command, cwd=tmp_path)
    assert rc == 1
    assert said.startswith("draw_report.py: error: qc/a.stats")


def test_files_of_other_programs_are_refused(checkout, tmp_path, monkeypatch, capsys):
    script = checkout / "scripts/draw_report.py"
    path, output = tmp_path / "a.stats.json", tmp_path / "o.html"
    for text, message in (
        ("{", ": not JSON: Expecting property name enclosed in double quotes: "
         "line 1 column 2 (char 1)"),
        ("[1]", " does not contain mapping_qualities: use a file that bwarp wrote for this option"),
    ):  # fmt: skip
        path.write_text(text)
        arguments = ["--statistics", path, "-o", output]
        assert refusal(script, arguments, monkeypatch, capsys) == (
            1,
            f"draw_report.py: error: {path}{message}\n",
        )
    assert not output.exists()


def test_counting_correct_reads(run_program, tmp_path):
    header = {"HD": {"VN": "1.6"}, "SQ": [{"SN": "chr1", "LN": 1000}]}
    with pysam.AlignmentFile(tmp_path / "s.sam", "w", header=header) as file:
        for start in (99, 500):
            record = pysam.AlignedSegment(file.header)
            record.query_name = "chr1_100_300_0_1_0_0_0:0:0_0:0:0_a"  # as in dwgsim
            record.query_sequence = "ACGT"
            record.reference_id, record.reference_start, record.cigarstring = 0, start, "4M"
            record.mapping_quality = 60
            file.write(record)
    done = run_program("count_correct.py", "s.sam", "-o", "t.json", cwd=tmp_path)
    assert done == (0, "", "1 of 2 reads are mapped correctly: 50.00 %\n")
    truth = json.loads((tmp_path / "t.json").read_text())
    assert (truth["correct"][60], truth["incorrect"][60], truth["unmapped"]) == (1, 1, 0)


def test_names_that_are_not_text(run_program, tmp_path):
    name = os.fsdecode(b"gr\xf6\xdfe")
    (tmp_path / f"{name}.stats.json").write_text(json.dumps(PAIRED))
    (tmp_path / f"{name}.tsv").write_text("query\tscore\na\t1\n")
    statistics = ["--statistics", f"{name}.stats.json"]
    # The server of the tests only supports names that are text.
    environment = {"LC_ALL": "C.UTF-8"}
    outputs = ["-o", "o.html", "--multiqc", "sections"]
    done = run_program("draw_report.py", *statistics, *outputs, cwd=tmp_path, env=environment)
    assert done == (0, "", "")
    assert "<td>gr&#65533;&#65533;e</td>" in (tmp_path / "o.html").read_text()
    section = yaml.safe_load((tmp_path / "sections/general_mqc.yaml").read_text())
    assert list(section["data"]) == ["gr\ufffd\ufffde"]
    done = run_program(
        "preview_table.py", f"{name}.tsv", "-o", "t.html", cwd=tmp_path, env=environment
    )
    assert done == (0, "", "")
    assert "gr&#65533;&#65533;e.tsv" in (tmp_path / "t.html").read_text()
