"""Randomly damaged configurations and sample sheets: a sentence per problem, or none.

More examples: BWARP_EXAMPLES=2000 pytest tests/hostile
"""

import os
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.options.configuration import configuration_schema
from bwarp_configuration import (
    ConfigFile,
    config_file_problems,
    config_problems,
    with_defaults,
)
from bwarp_sheet import read_sheet, sheet_file_problems, sheet_problems

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))
fuzzed = settings(max_examples=EXAMPLES * 5, deadline=None, derandomize=EXAMPLES == 40)

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["auto", "whole", "cpu", "19/20", "1/0", "../x", "a\tb", "", " ", "no", "1e9"]),
    st.lists(st.integers(0, 3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(0, 3), max_size=2),
    st.dates(),
)


@pytest.fixture(scope="module")
def schemas(checkout):
    samples = yaml.safe_load((checkout / "workflow/schemas/samples.schema.yaml").read_text())
    return {"config": configuration_schema(), "samples": samples}


@fuzzed
@given(st.data())
def test_any_configuration(schemas, data):
    """Values of any type for known and unknown keys."""
    schema = schemas["config"]
    config = {"reference": "g.fa"}
    for _ in range(data.draw(st.integers(0, 4))):
        section = data.draw(st.sampled_from([*schema["properties"], "speling", ""]))
        rule = schema["properties"].get(section, {})
        if "properties" in rule and data.draw(st.booleans()):
            keys = st.sampled_from([*rule["properties"], "mismatchs", "K"])
            config[section] = data.draw(st.dictionaries(keys, VALUES, max_size=3))
        else:
            config[section] = data.draw(VALUES)
    text = yaml.safe_dump(config)
    file = ConfigFile.parse("my.yaml", text)
    problems = config_problems(config, schema, [file])
    problems += config_file_problems(config, schema, [file], {"g.fa"})
    for problem in problems:
        check_sentence(str(problem))
        assert str(problem).startswith(("my.yaml", "the configuration"))
    if not problems:
        filled = with_defaults(config, schema)
        assert config_problems(filled, schema, [file]) == []


@fuzzed
@given(st.data())
def test_any_sheet(schemas, data):
    """A valid sheet with changed lines, cells and bytes."""
    lines = [
        "sample\tunit\tfq1\tfq2",
        "a\t1\ta_1.fq\ta_2.fq",
        "b\t\tb.fq\t",
        "# note",
        "c\t2\tc.fq",
    ]
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(lines) - 1))
        cells = lines[at].split("\t")
        cell = st.sampled_from(
            ["", "a", "1", "a_1.fq", "sample", "fq1", "x y", "../../x", '"a', "é", "\x00", "a\rb"]
        )
        cells[data.draw(st.integers(0, len(cells) - 1))] = data.draw(cell)
        more = data.draw(st.sampled_from([[], ["extra"], ["", ""]]))
        lines[at] = "\t".join(cells + more)
    text = data.draw(st.sampled_from(["\n", "\r\n", "\r"])).join(lines)
    content = text.encode(data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))
    rows, problems = read_sheet("my.tsv", content, schemas["samples"])
    problems += sheet_problems("my.tsv", rows, schemas["samples"], unique=("sample", "unit"))
    problems += sheet_file_problems("my.tsv", rows, schemas["samples"], {"a_1.fq", "b.fq"})
    assert rows or problems
    for problem in problems:
        check_sentence(str(problem))
    if not problems:
        for row in rows:
            assert re.fullmatch(r"[\w.-]+", row.cells["sample"])
            assert "/" not in row.cells.get("unit", "1")


@fuzzed
@given(st.binary(max_size=200))
def test_any_bytes_as_a_sheet(schemas, content):
    rows, problems = read_sheet("my.tsv", content, schemas["samples"])
    for problem in [*problems, *sheet_problems("my.tsv", rows, schemas["samples"], ("sample",))]:
        check_sentence(str(problem))
    assert rows or problems


def check_sentence(text):
    assert len(text.splitlines()) == 1, text
    assert text.isprintable(), text
    assert len(text) < 600
    where, _, message = text.partition(": ")
    assert where
    assert message
