"""The schema, config/README.md, config/config.yaml and the programs agree on keys and defaults."""

import re
import subprocess
import sys

import pytest
import yaml

from bwarp_configuration import ConfigFile, config_problems
from bwarp_sheet import read_sheet, sheet_problems


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
    in_schema = {key: shown(rule.get("default", "")) for key, rule in settings(schemas["config"])}
    assert documented == in_schema


def test_the_page_of_every_key_is_up_to_date(checkout):
    command = [sys.executable, checkout / "docs/write_configuration.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf", "0", "1.5", "x", "0.9.5", "[0.9]"])
def test_a_similarity_that_is_no_number(schemas, value):
    text = f"reference: a.fa\nscan:\n  reference: a.fa\n  queries: b.fa\n  similarity: {value}\n"
    problems = config_problems(
        yaml.safe_load(text), schemas["config"], [ConfigFile.parse("c.yaml", text)]
    )
    (said,) = [str(problem) for problem in problems if "similarity" in problem.where]
    assert said.startswith("c.yaml line 5, scan.similarity: ")
    assert said.endswith(
        " cannot be used; write a number above 0 and at most 1, such as 0.95 or 19/20"
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
    """A key that is left to the program stands there behind a #."""
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
    for before, line in zip(lines, lines[1:], strict=False):
        if re.match(r"\s*\w+:", line):
            assert before.lstrip().startswith("#"), line


def test_the_configuration_in_the_repository_holds_the_defaults(checkout, schemas):
    config = flat(yaml.safe_load((checkout / "config" / "config.yaml").read_text()))
    defaults = {
        key: rule["default"] for key, rule in settings(schemas["config"]) if "default" in rule
    }
    assert {key: config[key] for key in defaults} == defaults | DEMO


def test_the_sample_sheet_in_the_repository(checkout, schemas):
    text = (checkout / "config" / "samples.tsv").read_bytes()
    rows, problems = read_sheet("samples.tsv", text, schemas["samples"])
    assert problems == []
    assert sheet_problems("samples.tsv", rows, schemas["samples"], ("sample", "unit")) == []


PROGRAMS = {
    "index": "index_reference.py",
    "seeds": "find_seeds.py",
    "offtargets": "find_offtargets.py",
    "primers": "find_products.py",
    "mems": "find_mems.py",
    "scan": "scan_composition.py",
    "pairs": "align_pairs.py",
    "search": "search_database.py",
}
# What the workflow itself does, and no program.
OF_THE_WORKFLOW = ("parts",)

# What config/config.yaml sets for the demo.
DEMO = {"seeds.k": 20, "seeds.step": 10, "seeds.mismatches": 1}


@pytest.mark.parametrize("section", PROGRAMS)
def test_the_programs_have_the_same_defaults(schemas, run_program, section):
    """A key is an option of the program, and both say the same default."""
    help_text = run_program(PROGRAMS[section], "--help").stdout.partition("examples:")[0]
    for key, rule in schemas["config"]["properties"][section]["properties"].items():
        if key in OF_THE_WORKFLOW:
            continue
        option = "-k" if key == "k" else f"--{key.replace('_', '-')}"
        description = re.search(rf"\n  (?:-\w[^-]*, )?{option}\b(.*?)\n(?:  -|$)", help_text, re.S)
        assert description, f"{PROGRAMS[section]} has no {option}"
        default = rule.get("default", "auto")
        if default not in ("auto", "whole", False):
            description = " ".join(description[1].split())
            assert f"(default: {default})" in description


def shown(value):
    """A value as it is written in YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def flat(config, path=()):
    """Nested settings as one level of dotted keys."""
    values = {}
    for key, value in config.items():
        if isinstance(value, dict):
            values |= flat(value, (*path, key))
        else:
            values[".".join((*path, key))] = value
    return values
