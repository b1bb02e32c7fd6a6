"""The schema, config/README.md and config/config.yaml agree on keys and defaults."""

import itertools
import re
import subprocess
import sys

import pytest
import yaml

from bwarp.options.configuration import configuration_schema
from bwarp_configuration import ConfigFile, config_problems
from bwarp_sheet import read_sheet, sheet_problems


@pytest.fixture(scope="module")
def schemas(checkout):
    samples = yaml.safe_load((checkout / "workflow/schemas/samples.schema.yaml").read_text())
    return {"config": configuration_schema(), "samples": samples}


def settings(schema, path=()):
    """Yield each key of a schema that has a value, as (dotted key, its rule)."""
    for key, rule in schema["properties"].items():
        if "properties" in rule:
            yield from settings(rule, (*path, key))
        else:
            yield ".".join((*path, key)), rule


def readme_rows(checkout):
    """Return the tables in config/README.md: first cell without backticks -> second cell."""
    text = (checkout / "config" / "README.md").read_text()
    return dict(re.findall(r"^\| `([\w.]+)` \| *(.*?) *\|", text, re.MULTILINE))


def test_readme_names_every_key(checkout, schemas):
    keys = {key for key in readme_rows(checkout) if key not in schemas["samples"]["properties"]}
    assert keys == {key for key, _ in settings(schemas["config"])}


def test_the_tables_of_keys_are_up_to_date(checkout):
    command = [sys.executable, checkout / "docs/write_configuration.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "0", "1.5", "x", "0.9.5", "[0.9]"])
def test_a_similarity_that_is_not_a_number(schemas, value):
    text = f"reference: a.fa\nscan:\n  reference: a.fa\n  queries: b.fa\n  similarity: {value}\n"
    problems = config_problems(
        yaml.safe_load(text), schemas["config"], [ConfigFile.parse("c.yaml", text)]
    )
    (said,) = [str(problem) for problem in problems if "similarity" in problem.where]
    assert said.startswith("c.yaml, line 5, scan.similarity: ")
    assert said.endswith(
        " is not valid: write a number above 0 and at most 1, such as 0.95 or 19/20"
    )


def test_readme_names_every_column(checkout, schemas):
    rows, columns = readme_rows(checkout), schemas["samples"]["properties"]
    assert {column: rows[column] for column in columns} == {
        column: "yes" if column in schemas["samples"]["required"] else "" for column in columns
    }
    assert (
        f"`{columns['unit']['default']}` if empty"
        in (checkout / "config" / "README.md").read_text()
    )


def test_every_rule_says_what_to_write(schemas):
    def check(schema):
        assert schema.get("additionalProperties") is False
        for key, rule in schema["properties"].items():
            assert rule.get("write"), key
            if "properties" in rule:
                check(rule)

    for schema in schemas.values():
        check(schema)


def test_the_configuration_in_the_repository_names_every_key_once(checkout, schemas):
    """A key with the default of the program is commented out."""
    text = (checkout / "config" / "config.yaml").read_text()
    assert config_problems(yaml.safe_load(text), schemas["config"]) == []
    uncommented = re.sub(r"^( *)# (\w+: \S+)$", r"\1\2", text, flags=re.MULTILINE)
    keys = ConfigFile.parse("config.yaml", uncommented)
    assert keys.repeated == ()
    in_schema = {key for key, _ in settings(schemas["config"])}
    assert {".".join(path) for path in keys.lines} - set(schemas["config"]["properties"]) | {
        "reference",
        "samples",
        "backend",
    } == in_schema


def test_every_key_of_the_configuration_has_a_comment(checkout):
    lines = (checkout / "config" / "config.yaml").read_text().splitlines()
    for before, line in itertools.pairwise(lines):
        if re.match(r"\s*\w+:", line):
            assert before.lstrip().startswith("#"), line


def test_the_configuration_in_the_repository_holds_the_defaults(checkout, schemas):
    config = flat(yaml.safe_load((checkout / "config" / "config.yaml").read_text()))
    defaults = {
        key: rule["default"] for key, rule in settings(schemas["config"]) if "default" in rule
    }
    assert {key: config[key] for key in defaults | DEMO} == defaults | DEMO


def test_the_sample_sheet_in_the_repository(checkout, schemas):
    text = (checkout / "config" / "samples.tsv").read_bytes()
    rows, problems = read_sheet("samples.tsv", text, schemas["samples"])
    assert problems == []
    assert sheet_problems("samples.tsv", rows, schemas["samples"], ("sample", "unit")) == []


# Values in config/config.yaml for the demo.
DEMO = {"seeds.k": 20, "seeds.step": 10, "seeds.mismatches": 1}


def flat(config, path=()):
    """Return nested settings as one level of dotted keys."""
    values = {}
    for key, value in config.items():
        if isinstance(value, dict):
            values |= flat(value, (*path, key))
        else:
            values[".".join((*path, key))] = value
    return values
