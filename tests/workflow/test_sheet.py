"""Sample sheets are read as spreadsheets write them, and all problems are found at once."""

import pytest

from bwarp_sheet import Row, files_of_cell, read_sheet, sheet_file_problems, sheet_problems

SHEET = {
    "type": "object",
    "additionalProperties": False,
    "required": ["sample", "fq1"],
    "properties": {
        "sample": {"type": "string", "pattern": "^[a-z0-9]+$", "write": "a plain name"},
        "unit": {"type": "string", "pattern": "^[a-z0-9]+$", "default": "1", "write": "a name"},
        "fq1": {"type": "string", "file": True, "write": "the path of a FASTQ file"},
        "fq2": {"type": "string", "file": True, "write": "the path of the second reads"},
    },
}


def sheet_problems_of(text: str) -> list[str]:
    rows, problems = read_sheet("samples.tsv", text.encode(), SHEET)
    problems += sheet_problems("samples.tsv", rows, SHEET, unique=("sample", "unit"))
    return [str(problem) for problem in problems]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
def test_a_sheet_is_read_with_its_line_numbers(start, end):
    lines = ["# ours", "sample\tfq1\tfq2", "a\ta_1.fq\ta_2.fq", "", "b\t b.fq \t", ""]
    rows, problems = read_sheet("samples.tsv", (start + end.join(lines)).encode(), SHEET)
    assert problems == []
    assert rows == [
        Row(3, {"sample": "a", "fq1": "a_1.fq", "fq2": "a_2.fq"}),
        Row(5, {"sample": "b", "fq1": "b.fq"}),
    ]


ROWS = [
    Row(3, {"sample": "a", "fq1": "a 1.fq", "fq2": "a_2.fq"}),
    Row(6, {"sample": "b", "fq1": "b.fq"}),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["\t", ",", ";"])
def test_what_spreadsheets_write(mark, end, encoding):
    lines = [
        ["# ours", "and yours"], ["sample", "fq1", '"fq2"', "", ""],
        [" a\xa0", '" a 1.fq"', "a_2.fq\u200b", "", ""], ["", "", "", "", ""], ['"# no"', "c.fq"],
        ["b", "b.fq", '""'],
    ]  # fmt: skip
    text = end.join(mark.join(cells) for cells in lines) + end
    assert read_sheet("s", text.encode(encoding), SHEET) == (ROWS, [])


def test_a_separator_declared_for_excel():
    rows, problems = read_sheet("s", b"sep=;\r\nsample;fq1\r\na;b,c.fq\r\n", SHEET)
    assert (rows, problems) == ([Row(3, {"sample": "a", "fq1": "b,c.fq"})], [])


def test_several_files_in_a_cell():
    text = 'sample;fq1;fq2\na;"1.fq; 2.fq;";"3.fq ;4.fq"\nb;1.fq;"5.fq;6.fq"\n'
    rows, problems = read_sheet("s.csv", text.encode(), SHEET)
    assert problems == []
    assert [files_of_cell(rows[0].cells[key]) for key in ("fq1", "fq2")] == [
        ["1.fq", "2.fq"],
        ["3.fq", "4.fq"],
    ]
    assert files_of_cell(None) == []
    assert [str(problem) for problem in sheet_problems("s.csv", rows, SHEET, ("sample",))] == [
        "s.csv, line 3, column fq2: 2 files here, but 1 in fq1: give the same number in both, in "
        "the same order"
    ]


def test_pairs_that_are_given_in_two_ways():
    schema = {**SHEET, "additionalProperties": True}
    rows = [Row(2, {"sample": "a", "fq1": "1", "fq2": "2", "interleaved": "yes"})]
    assert [str(problem) for problem in sheet_problems("s", rows, schema, ("sample",))] == [
        "s, line 2, column interleaved: yes means that both ends are in fq1: leave fq2 empty, "
        "or write no"
    ]


def test_quotes_that_are_not_closed():
    rows, problems = read_sheet("s", b'sample\tfq1\na\t"b.fq\n', SHEET)
    assert rows == []
    assert [str(problem) for problem in problems] == [
        's, line 2, quotes: unmatched ": close the quotes, or remove them'
    ]


def test_cells_under_no_column():
    assert sheet_problems_of("sample,,fq1\na,x,b.fq\n") == [
        "samples.tsv, line 1, column 2 '': has no name: remove the column"
    ]
    assert sheet_problems_of("sample,fq1\na,b.fq,c,d\n") == [
        "samples.tsv, line 2, column 3: found 4 columns instead of 2: remove the extra commas"
    ]


def test_a_sheet_with_every_kind_of_bad_cell():
    text = "sample\tunit\tfq1\nA b\t1\ta.fq\nb\t\t\nc\t1\tc.fq\nc\t\td.fq\nd\t1\td.fq\td.fq\n"
    assert sheet_problems_of(text) == [
        "samples.tsv, line 6, column 4: found 4 columns instead of 3: remove the extra tabs",
        "samples.tsv, line 2, column sample: 'A b' is not valid: write a plain name",
        "samples.tsv, line 3, column fq1: is missing: write the path of a FASTQ file",
        "samples.tsv, line 5, column unit: c 1 is also in line 4: give each line its own sample "
        "and unit",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "samples.tsv, header: is missing: begin with the line sample  unit  fq1  fq2"),
        ("sample\tfq1\n", "samples.tsv, rows: there are none: write one line per sample"),
        (
            "sample fq1\na a.fq\n",
            "samples.tsv, line 1, header: has no tabs: separate columns by one tab",
        ),
        (
            "sample\tfastq\tfq1\n",
            "samples.tsv, line 1, column 2 'fastq': is unknown: remove it, or write one of "
            "sample, unit, fq1, fq2",
        ),
        ("#\nsampel\tfq1\n", "samples.tsv, line 2, column 1 'sampel': is unknown: "),
        (
            "sample\tfq1\tfq1\n",
            "samples.tsv, line 1, column 3 'fq1': is given twice: remove one",
        ),
        (
            "sample\n",
            "samples.tsv, line 1, column fq1: is missing: write the path of a FASTQ file",
        ),
    ],
)
def test_headers_that_cannot_be_used(text, problem):
    assert sheet_problems_of(text)[0].startswith(problem)


def test_a_spreadsheet_file_is_not_a_sheet():
    rows, problems = read_sheet("samples.xlsx", b"PK\x03\x04\xff\xfe", SHEET)
    assert rows == []
    assert [str(problem) for problem in problems] == [
        "samples.xlsx, content: is an Excel workbook: save the sheet as CSV or tab-separated text "
        "(UTF-8)"
    ]
    _, problems = read_sheet("samples.csv", b"sample,fq1\na\xe4,b\n", SHEET)
    assert [problem.message for problem in problems] == [
        "is not plain text: save the sheet as CSV or tab-separated text (UTF-8)"
    ]


def test_files_of_a_sheet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.fq", "b.fq"):
        (tmp_path / name).write_text("")
    (tmp_path / "x").mkdir()
    rows = [
        Row(2, {"sample": "a", "fq1": "a.fq", "fq2": "x/../a.fq"}),
        Row(3, {"sample": "b", "fq1": "b.fq", "fq2": "c.fq"}),
        Row(4, {"sample": "c", "fq1": "made.fq", "fq2": "b.fq"}),
        Row(5, {"sample": "c", "fq1": "made2.fq;made2.fq; none.fq"}),
    ]
    problems = sheet_file_problems("samples.tsv", rows, SHEET, made={"made.fq", "made2.fq"})
    assert [str(problem) for problem in problems] == [
        "samples.tsv, line 2, column fq2: x/../a.fq is also in column fq1: give each file once",
        "samples.tsv, line 3, column fq2: c.fq does not exist: write a path relative to the "
        "folder in which snakemake starts",
        "samples.tsv, line 4, column fq2: b.fq is also in line 3, column fq1: give each file once",
        "samples.tsv, line 5, column fq1: made2.fq is also in column fq1: give each file once",
        "samples.tsv, line 5, column fq1: none.fq does not exist: write a path relative to the "
        "folder in which snakemake starts",
    ]


def test_a_sheet_with_the_line_ends_of_an_old_mac():
    rows, problems = read_sheet("s.tsv", b"sample\tfq1\ra\ta.fq\rb\tb.fq\r", SHEET)
    assert problems == []
    assert [(row.line, row.cells) for row in rows] == [
        (2, {"sample": "a", "fq1": "a.fq"}),
        (3, {"sample": "b", "fq1": "b.fq"}),
    ]


def test_a_path_that_cannot_be_printed():
    (problem,) = sheet_file_problems("s.tsv", [Row(2, {"fq1": "a\x00b"})], SHEET)
    assert problem.message == (
        r"'a\x00b' does not exist: write a path relative to the folder in which snakemake starts"
    )


@pytest.mark.parametrize("kind", ["over", "skipped", "steps"])
def test_a_sample_named_like_a_file_of_another(kind):
    text = f"sample\tfq1\na.{kind}\tb.fq\na\ta.fq\na.{kind}\tc.fq\n"
    schema = {**SHEET, "properties": SHEET["properties"] | {"sample": {"write": "a name"}}}
    rows, _ = read_sheet("s.tsv", text.encode(), schema)
    assert [str(problem) for problem in sheet_problems("s.tsv", rows, schema, ("fq1",))] == [
        f"s.tsv, line 2, column sample: a.{kind}.tsv would be a file of both a.{kind} and a: "
        "rename one of the samples"
    ]
    alone = [row for row in rows if row.cells["sample"] != "a"]
    assert sheet_problems("s.tsv", alone, schema, ("fq1",)) == []
