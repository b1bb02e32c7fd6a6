"""The schema, config/README.md, config/config.yaml and the programs agree on keys and defaults."""

import re

import pytest
import yaml

from bwarp.configuration import config_problems, read_sheet, sheet_problems, with_defaults


@pytest.fixture(scope="module")
def schemas(checkout):
    folder = checkout / "workflow" / "schemas"
    return {
        name: yaml.safe_load((folder / f"{name}.schema.yaml").read_text())
        for name in ("config", "samples")
    }


def settings(schema, path=()):
    """Every key of a schema that holds a value, as (dotted key, its rule)."""
    for key, rule in schema["properties"].items():
        if "properties" in rule:
            yield from settings(rule, (*path, key))
        else:
            yield ".".join((*path, key)), rule


def readme_rows(checkout):
    """The rows of the tables in config/README.md: first cell without backticks -> second cell."""
    text = (checkout / "config" / "README.md").read_text()
    return dict(re.findall(r"^\| `([\w.]+)` \| *(.*?) *\|", text, re.MULTILINE))


def test_readme_names_every_key_with_its_default_and_no_other(checkout, schemas):
    columns = schemas["samples"]["properties"]
    rows = readme_rows(checkout)
    documented = {key: default.strip("`") for key, default in rows.items() if key not in columns}
    in_schema = {key: str(rule.get("default", "")) for key, rule in settings(schemas["config"])}
    assert documented == in_schema


def test_readme_names_every_column(checkout, schemas):
    rows, columns = readme_rows(checkout), schemas["samples"]["properties"]
    assert {column: rows[column] for column in columns} == {
        column: "yes" if column in schemas["samples"]["required"] else "" for column in columns
    }
    assert (
        f"`{columns['unit']['default']}` where it is empty"
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
    config = yaml.safe_load((checkout / "config" / "config.yaml").read_text())
    assert config_problems(config, schemas["config"]) == []
    assert set(flat(config)) == {key for key, _ in settings(schemas["config"])}


def test_every_key_of_the_configuration_has_a_comment(checkout):
    lines = (checkout / "config" / "config.yaml").read_text().splitlines()
    for before, line in zip(lines, lines[1:], strict=False):
        if re.match(r"\s*\w+:", line):
            assert before.lstrip().startswith("#") or "  #" in line, line


def test_the_configuration_in_the_repository_holds_the_defaults(checkout, schemas):
    config = flat(yaml.safe_load((checkout / "config" / "config.yaml").read_text()))
    defaults = {
        key: rule["default"] for key, rule in settings(schemas["config"]) if "default" in rule
    }
    assert {key: config[key] for key in defaults} == defaults


def test_the_sample_sheet_in_the_repository(checkout, schemas):
    text = (checkout / "config" / "samples.tsv").read_text()
    rows, problems = read_sheet("samples.tsv", text, schemas["samples"])
    assert problems == []
    assert sheet_problems("samples.tsv", rows, schemas["samples"], ("sample", "unit")) == []


PROGRAMS = {"index": "index_reference.py"}


@pytest.mark.parametrize("section", PROGRAMS)
def test_the_programs_have_the_same_defaults(schemas, run_program, section):
    """A key is an option of the program, and both say the same default."""
    help_text = run_program(PROGRAMS[section], "--help").stdout.partition("examples:")[0]
    defaults = with_defaults({}, schemas["config"])[section]
    for key, default in defaults.items():
        option = f"--{key.replace('_', '-')} "
        description = help_text.rpartition(option)[2].partition("\n  -")[0]
        assert description, f"{PROGRAMS[section]} has no {option}"
        if default != "auto":
            assert f"(default: {default})" in " ".join(description.split())


def flat(config, path=()):
    """Nested settings as one level of dotted keys."""
    values = {}
    for key, value in config.items():
        if isinstance(value, dict):
            values |= flat(value, (*path, key))
        else:
            values[".".join((*path, key))] = value
    return values
