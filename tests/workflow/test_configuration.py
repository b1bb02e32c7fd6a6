"""All problems of a configuration or a sheet are found at once, with line and remedy."""

import pytest
import yaml

from bwarp_configuration import (
    ConfigFile,
    config_file_problems,
    config_problems,
    typed_values,
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


def problems_of(text: str) -> list[str]:
    file = ConfigFile.parse("config.yaml", text)
    return [str(problem) for problem in config_problems(yaml.safe_load(text), SCHEMA, [file])]


def test_a_configuration_without_problems():
    assert problems_of("reference: a.fa\nindex:\n  rate: 96\n") == []


def test_all_problems_at_once_in_the_order_of_the_lines():
    assert problems_of(
        "# of ours\nbackend: gpu\nindex:\n  # too odd\n  rate: 33\n  lenght: 3\n"
    ) == [
        "config.yaml, reference: is missing: write the path of a FASTA file",
        "config.yaml, line 2, backend: 'gpu' is not valid: write auto or cpu",
        "config.yaml, line 5, index.rate: 33 is not valid: write a multiple of 32",
        "config.yaml, line 6, index.lenght: is unknown: did you mean length?",
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
        f"config.yaml, line 3, index.rate: {shown} is not valid: write a multiple of 32"
    ]


def test_a_value_where_a_section_is_due():
    assert problems_of("reference: a.fa\nindex: 64\n") == [
        "config.yaml, line 2, index: 64 is not valid: write a section with the keys rate and length"
    ]


def test_an_unknown_key_that_resembles_none():
    assert problems_of("reference: a.fa\nthreads: 4\n") == [
        "config.yaml, line 2, threads: is unknown: remove it, or write one of reference, "
        "backend, index"
    ]


def test_an_unknown_key_that_would_end_a_line():
    assert problems_of('reference: a.fa\n"a\\x1eb\\n": 4\n') == [
        "config.yaml, line 2, a\\x1eb\\n: is unknown: remove it, or write one of reference, "
        "backend, index"
    ]


def test_a_repeated_key():
    text = "reference: a.fa\nindex:\n  rate: 64\nreference: b.fa\n"
    assert problems_of(text) == ["config.yaml, line 4, reference: is given twice: remove one"]


def test_errors_name_the_last_file_that_set_a_value():
    base = ConfigFile.parse("base.yaml", "reference: a.fa\nindex:\n  rate: 64\n")
    mine = ConfigFile.parse("mine.yaml", "\nindex:\n  rate: 1\n")
    typed = ConfigFile("--config", {("backend",): None}, ())
    config = {"reference": "a.fa", "index": {"rate": 1}, "backend": "x"}
    assert [str(problem) for problem in config_problems(config, SCHEMA, [base, mine, typed])] == [
        "--config, backend: 'x' is not valid: write auto or cpu",
        "mine.yaml, line 3, index.rate: 1 is not valid: write a multiple of 32",
    ]


def test_a_missing_key_is_looked_for_in_the_last_file():
    files = [ConfigFile.parse(name, "backend: auto\n") for name in ("base.yaml", "mine.yaml")]
    typed = ConfigFile("--config", {}, ())
    assert [str(problem) for problem in config_problems({}, SCHEMA, [*files, typed])] == [
        "mine.yaml, reference: is missing: write the path of a FASTA file"
    ]


def test_input_files_that_are_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "list.txt").write_text("")
    text = "reference: folder\nindex:\n  words: none.txt\n"
    config, file = yaml.safe_load(text), ConfigFile.parse("config.yaml", text)
    assert [str(problem) for problem in config_file_problems(config, SCHEMA, [file])] == [
        "config.yaml, line 1, reference: folder is a folder: write the path of a file",
        "config.yaml, line 3, index.words: none.txt does not exist: write a path relative to the "
        "folder in which snakemake starts",
    ]
    config = {"reference": "a{b.txt"}
    assert [problem.message for problem in config_file_problems(config, SCHEMA, [file])] == [
        "a{b.txt contains a brace, a wildcard in Snakemake: rename it"
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


# Values on the command line, where everything in braces is text.
TYPED = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "write": "a name"},
        "map": {
            "type": "object",
            "properties": {
                "match": {"type": "integer", "minimum": 1, "write": "a whole number"},
                "share": {"type": "number", "write": "a number"},
                "hic": {"type": "boolean", "write": "true or false"},
                "filter": {"enum": ["auto", "on", "off"], "write": "auto, on or off"},
                "length": {"anyOf": [{"const": "auto"}, {"type": "integer"}], "write": "a number"},
                "side": {"enum": [3, 5], "write": "3 or 5"},
                "size": {"type": "string", "write": "a text"},
            },
        },
    },
}


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("match", "2", 2),
        ("match", "0", "0"),
        ("match", "2.0", "2.0"),
        ("match", "true", "true"),
        ("match", "{", "{"),
        ("share", "0.5", 0.5),
        ("share", ".inf", ".inf"),
        ("hic", "true", True),
        ("hic", "False", False),
        ("hic", "1", "1"),
        ("filter", "on", "on"),
        ("length", "auto", "auto"),
        ("length", "12", 12),
        ("side", "5", 5),
        ("side", "4", "4"),
        ("size", "12", "12"),
        ("unknown", "12", "12"),
    ],
)
def test_text_of_the_command_line_is_read_as_in_a_file(key, text, value):
    typed = {"map": {key: text}}
    read = typed_values({"name": "7", "map": {"match": "3", key: text}}, TYPED, typed)
    assert read["map"][key] == value
    assert type(read["map"][key]) is type(value)
    # Values in a file are not converted.
    assert read["name"] == "7"
    assert key == "match" or read["map"]["match"] == "3"


def test_the_command_line_of_another_workflow_is_ignored():
    """This workflow is a module of the other one, with its own configuration."""
    read = typed_values({"map": {"match": 3}}, TYPED, {"map": {"match": "2"}, "name": "x"})
    assert read == {"map": {"match": 3}}


def test_errors_name_the_command_line_for_a_key_in_braces():
    file = ConfigFile.parse("config.yaml", "reference: a.fa\nindex:\n  rate: 64\n")
    typed = ConfigFile.of_values("--config", {"index": {"rate": "x"}})
    config = {"reference": "a.fa", "index": {"rate": "x"}}
    assert [str(problem) for problem in config_problems(config, SCHEMA, [file, typed])] == [
        "--config, index.rate: 'x' is not valid: write a multiple of 32"
    ]
