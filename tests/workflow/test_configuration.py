"""Every problem of a configuration or a sheet is found at once, with its line and its remedy."""

import pytest
import yaml

from bwarp_configuration import (
    ConfigFile,
    Row,
    config_file_problems,
    config_problems,
    read_sheet,
    sheet_file_problems,
    sheet_problems,
    with_defaults,
)

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["reference"],
    "write": "the known keys",
    "properties": {
        "reference": {"type": "string", "file": True, "write": "the path of a FASTA file"},
        "backend": {"enum": ["auto", "cpu"], "default": "auto", "write": "auto or cpu"},
        "index": {
            "type": "object",
            "additionalProperties": False,
            "default": {},
            "write": "a section with the keys rate and length",
            "properties": {
                "rate": {
                    "type": "integer",
                    "minimum": 32,
                    "multipleOf": 32,
                    "default": 64,
                    "write": "a multiple of 32",
                },
                "length": {"type": "integer", "write": "a whole number"},
                "words": {"type": "string", "file": True, "write": "the path of a list"},
            },
        },
    },
}
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


def problems_of(text: str) -> list[str]:
    file = ConfigFile.parse("config.yaml", text)
    return [str(problem) for problem in config_problems(yaml.safe_load(text), SCHEMA, [file])]


def sheet_problems_of(text: str) -> list[str]:
    rows, problems = read_sheet("samples.tsv", text.encode(), SHEET)
    problems += sheet_problems("samples.tsv", rows, SHEET, unique=("sample", "unit"))
    return [str(problem) for problem in problems]


def test_a_configuration_without_problems():
    assert problems_of("reference: a.fa\nindex:\n  rate: 96\n") == []


def test_all_problems_at_once_in_the_order_of_the_lines():
    assert problems_of(
        "# of ours\nbackend: gpu\nindex:\n  # too odd\n  rate: 33\n  lenght: 3\n"
    ) == [
        "config.yaml, reference: is missing; write the path of a FASTA file",
        "config.yaml line 2, backend: 'gpu' cannot be used; write auto or cpu",
        "config.yaml line 5, index.rate: 33 cannot be used; write a multiple of 32",
        "config.yaml line 6, index.lenght: is not known; did you mean length?",
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("fast", "'fast'"),
        ("yes", "true"),
        ("", "an empty value"),
        ("64.0", "64.0"),
        ("[64]", "[64]"),
        ("{a: 1}", "a section of keys"),
        ("0", "0"),
    ],
)
def test_values_that_are_no_multiple_of_32(value, shown):
    assert problems_of(f"reference: a.fa\nindex:\n  rate: {value}\n") == [
        f"config.yaml line 3, index.rate: {shown} cannot be used; write a multiple of 32"
    ]


def test_a_value_where_a_section_is_due():
    assert problems_of("reference: a.fa\nindex: 64\n") == [
        "config.yaml line 2, index: 64 cannot be used; "
        "write a section with the keys rate and length"
    ]


def test_an_unknown_key_that_resembles_none():
    assert problems_of("reference: a.fa\nthreads: 4\n") == [
        "config.yaml line 2, threads: is not known; remove it, or write one of: "
        "reference, backend, index"
    ]


def test_an_unknown_key_that_would_end_a_line():
    assert problems_of('reference: a.fa\n"a\\x1eb\\n": 4\n') == [
        "config.yaml line 2, a\\x1eb\\n: is not known; remove it, or write one of: "
        "reference, backend, index"
    ]


def test_a_key_that_stands_twice():
    text = "reference: a.fa\nindex:\n  rate: 64\nreference: b.fa\n"
    assert problems_of(text) == [
        "config.yaml line 4, reference: is written twice; keep one of them"
    ]


def test_the_file_that_set_a_value_last_is_blamed():
    base = ConfigFile.parse("base.yaml", "reference: a.fa\nindex:\n  rate: 64\n")
    mine = ConfigFile.parse("mine.yaml", "\nindex:\n  rate: 1\n")
    typed = ConfigFile("--config", {("backend",): None}, ())
    config = {"reference": "a.fa", "index": {"rate": 1}, "backend": "x"}
    assert [str(problem) for problem in config_problems(config, SCHEMA, [base, mine, typed])] == [
        "--config, backend: 'x' cannot be used; write auto or cpu",
        "mine.yaml line 3, index.rate: 1 cannot be used; write a multiple of 32",
    ]


def test_a_missing_key_is_looked_for_in_the_last_file():
    files = [ConfigFile.parse(name, "backend: auto\n") for name in ("base.yaml", "mine.yaml")]
    typed = ConfigFile("--config", {}, ())
    assert [str(problem) for problem in config_problems({}, SCHEMA, [*files, typed])] == [
        "mine.yaml, reference: is missing; write the path of a FASTA file"
    ]


def test_input_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "list.txt").write_text("")
    text = "reference: folder\nindex:\n  words: none.txt\n"
    config, file = yaml.safe_load(text), ConfigFile.parse("config.yaml", text)
    assert [str(problem) for problem in config_file_problems(config, SCHEMA, [file])] == [
        "config.yaml line 1, reference: folder is a folder; write the path of a file",
        "config.yaml line 3, index.words: none.txt does not exist; "
        "write a path relative to the folder snakemake is started in",
    ]
    config = {"reference": "a{b.txt"}
    assert [problem.message for problem in config_file_problems(config, SCHEMA, [file])] == [
        "a{b.txt has a brace, a wildcard to Snakemake; rename it"
    ]
    config = {"reference": "list.txt", "index": {"words": "made.txt"}}
    assert config_file_problems(config, SCHEMA, [file], made={"made.txt"}) == []


def test_defaults_fill_what_is_left_out_and_nothing_else():
    config = {"reference": "a.fa", "index": {"length": 3}}
    assert with_defaults(config, SCHEMA) == {
        "reference": "a.fa",
        "backend": "auto",
        "index": {"rate": 64, "length": 3},
    }
    assert config == {"reference": "a.fa", "index": {"length": 3}}
    assert with_defaults({}, SCHEMA)["index"] == {"rate": 64}
    assert SCHEMA["properties"]["index"]["default"] == {}


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


def test_a_sheet_with_every_kind_of_bad_cell():
    text = "sample\tunit\tfq1\nA b\t1\ta.fq\nb\t\t\nc\t1\tc.fq\nc\t\td.fq\nd\t1\td.fq\td.fq\n"
    assert sheet_problems_of(text) == [
        "samples.tsv line 6, column 4: there are 4 cells under 3 columns; "
        "remove the tabs that are too many",
        "samples.tsv line 2, column sample: 'A b' cannot be used; write a plain name",
        "samples.tsv line 3, column fq1: is missing; write the path of a FASTQ file",
        "samples.tsv line 5, column unit: c 1 stands in line 4 too; "
        "give each line its own sample and unit",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "samples.tsv, header: is missing; begin with the line: sample  unit  fq1  fq2"),
        ("sample\tfq1\n", "samples.tsv, rows: there are none; write a line for each sample"),
        (
            "sample fq1\na a.fq\n",
            "samples.tsv line 1, header: has no tabs; put one tab between two columns",
        ),
        (
            "sample,unit, fq1\na,1,a.fq\n",
            "samples.tsv line 1, header: has commas between its columns; "
            "save the sheet with tabs between them",
        ),
        (
            "# from a spreadsheet\nsample;fq1\na;a.fq\n",
            "samples.tsv line 2, header: has semicolons between its columns; "
            "save the sheet with tabs between them",
        ),
        (
            "sample\tfastq\tfq1\n",
            "samples.tsv line 1, column 2 'fastq': is not known; remove it, or write one of: "
            "sample, unit, fq1, fq2",
        ),
        ("#\nsampel\tfq1\n", "samples.tsv line 2, column 1 'sampel': is not known; "),
        (
            "sample\tfq1\tfq1\n",
            "samples.tsv line 1, column 3 'fq1': is there twice; keep one",
        ),
        (
            "sample\n",
            "samples.tsv line 1, column fq1: is missing; write the path of a FASTQ file",
        ),
    ],
)
def test_headers_that_cannot_be_used(text, problem):
    assert sheet_problems_of(text)[0].startswith(problem)


def test_a_spreadsheet_file_is_no_sheet():
    rows, problems = read_sheet("samples.xlsx", b"PK\x03\x04\xff\xfe", SHEET)
    assert rows == []
    assert [str(problem) for problem in problems] == [
        "samples.xlsx, content: is not plain text; save the sheet as tab-separated text (UTF-8)"
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
    ]
    problems = sheet_file_problems("samples.tsv", rows, SHEET, made={"made.fq"})
    assert [str(problem) for problem in problems] == [
        "samples.tsv line 2, column fq2: x/../a.fq stands in column fq1 too; give each file once",
        "samples.tsv line 3, column fq2: c.fq does not exist; "
        "write a path relative to the folder snakemake is started in",
        "samples.tsv line 4, column fq2: b.fq stands in line 3, column fq1 too; "
        "give each file once",
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
        r"'a\x00b' does not exist; write a path relative to the folder snakemake is started in"
    )
