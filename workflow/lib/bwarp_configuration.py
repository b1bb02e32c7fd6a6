"""Check the configuration of a workflow and report all problems at once, with file and line.

A schema (JSON Schema, draft 2020-12) defines what is allowed. Every property in it has a ``write``
entry, half a sentence that completes "write ...", so that each message can say what to type
instead. A property with ``file: true`` is the path of an input. This module does not depend on
Snakemake: it takes texts and parsed values and returns problems.

    config text --yaml--> values --+--> config_problems --> list of Problem
    schema ------------------------'
"""

import difflib
import math
import os
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

import yaml
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

__all__ = [
    "ConfigFile",
    "Problem",
    "config_file_problems",
    "config_problems",
    "explain",
    "file_message",
    "in_reading_order",
    "printable",
    "typed_values",
    "unknown_message",
    "validator",
    "with_defaults",
]


@dataclass(frozen=True)
class Problem:
    """One thing that the user must change."""

    file: str
    line: int | None  # None if the value is missing or was given on the command line
    where: str  # a key such as index.occ_rate, or "column fq1"
    message: str

    def __str__(self) -> str:
        line = f", line {self.line}" if self.line else ""
        # A key may contain characters that end a line on a terminal.
        where = "".join(
            letter if letter.isprintable() else ascii(letter)[1:-1] for letter in self.where
        )
        return f"{self.file}{line}, {where}: {self.message}"


@dataclass(frozen=True)
class ConfigFile:
    """A configuration file, or the command line, and the line of each key in it."""

    name: str
    lines: Mapping[tuple[str, ...], int | None]
    repeated: tuple[tuple[tuple[str, ...], int], ...]  # keys that are repeated, and their lines

    @classmethod
    def parse(cls, name: str, text: str) -> "ConfigFile":
        """Find the keys of a YAML text; `name` is the name of the file in messages."""
        lines, repeated = {}, []
        for path, line in _keys(yaml.compose(text, Loader=yaml.SafeLoader), ()):
            if path in lines:
                repeated.append((path, line))
            lines[path] = line
        return cls(name, lines, tuple(repeated))

    @classmethod
    def of_values(cls, name: str, values: Mapping) -> "ConfigFile":
        """Return the keys of values that are in no file."""
        return cls(name, dict.fromkeys(_paths(values, ())), ())


def config_problems(
    config: Mapping, schema: Mapping, files: Iterable[ConfigFile] = ()
) -> list[Problem]:
    """Return everything in `config` that `schema` does not allow.

    Parameters
    ----------
    config : mapping
        The merged values of all files and the command line.
    schema : mapping
        The schema.
    files : iterable of ConfigFile
        The files, later ones overriding earlier ones.
    """
    files = tuple(files)
    problems = [
        Problem(file.name, line, ".".join(path), "is given twice: remove one")
        for file in files
        for path, line in file.repeated
    ]
    for error in validator(schema).iter_errors(config):
        for path, message in explain(error, schema):
            file, line = _find_setting(path, files)
            problems.append(Problem(file, line, ".".join(path), message))
    return in_reading_order(problems)


def config_file_problems(
    config: Mapping, schema: Mapping, files: Iterable[ConfigFile], made: Container[str] = ()
) -> list[Problem]:
    """Return missing input files in `config`, except those in `made`, which rules make."""
    files = tuple(files)
    problems = []
    for path, value in _file_settings(config, schema, ()):
        message = file_message(value, made)
        if "{" in value or "}" in value:
            message = f"{printable(value)} contains a brace, a wildcard in Snakemake: rename it"
        if message:
            problems.append(Problem(*_find_setting(path, files), ".".join(path), message))
    return in_reading_order(problems)


def typed_values(config: Mapping, schema: Mapping, typed: Mapping) -> dict:
    """Return a copy of `config` with texts in `typed` converted to the types of the schema.

    Snakemake passes values in braces as text: ``2`` in ``--config 'map={match: 2}'``.
    """
    read = dict(config)
    for key, value in typed.items():
        rule = schema.get("properties", {}).get(key, {})
        if isinstance(value, Mapping) and isinstance(read.get(key), Mapping):
            read[key] = typed_values(read[key], rule, value)
        elif isinstance(value, str) and read.get(key) == value and rule:
            allowed = validator(rule).is_valid
            meant = value if allowed(value) else _plain_value(value)
            read[key] = meant if allowed(meant) else value
    return read


def _plain_value(text: str):
    """Return the value of a text in a YAML file."""
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def with_defaults(config: Mapping, schema: Mapping) -> dict:
    """Return a copy of `config` with defaults for the keys that sections omit."""
    filled = dict(config)
    for key, rule in schema.get("properties", {}).items():
        if key not in filled and "default" in rule:
            filled[key] = rule["default"]
        if isinstance(filled.get(key), Mapping):
            filled[key] = with_defaults(filled[key], rule)
    return filled


def in_reading_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return each problem once (a value may break two bounds), by file and line."""
    return sorted(dict.fromkeys(problems), key=lambda problem: (problem.file, problem.line or 0))


def _find_setting(path: tuple[str, ...], files: Iterable[ConfigFile]) -> tuple[str, int | None]:
    """Return the file and line that set the key `path`, or the file where it belongs and None."""
    files = tuple(files)
    for file in reversed(files):
        if path in file.lines:
            return file.name, file.lines[path]
    if len(path) > 1 and any(path[:-1] in file.lines for file in files):
        return _find_setting(path[:-1], files)[0], None
    written = [file.name for file in files if any(file.lines.values())]
    return (written[-1] if written else "the configuration"), None


def _keys(node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the path and the line of every key below a node of a YAML document."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        yield (*path, key.value), key.start_mark.line + 1
        yield from _keys(value, (*path, key.value))


def _paths(values: Mapping, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key of nested values."""
    for key, value in values.items():
        yield (*path, str(key))
        if isinstance(value, Mapping):
            yield from _paths(value, (*path, str(key)))


def _file_settings(
    config: Mapping, schema: Mapping, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the key and the value of every input file in a configuration."""
    for key, rule in schema["properties"].items():
        value = config.get(key)
        if rule.get("file") and isinstance(value, str | list):
            yield from (((*path, key), one) for one in listed(value) if isinstance(one, str))
        elif isinstance(value, Mapping) and "properties" in rule:
            yield from _file_settings(value, rule, (*path, key))


def listed(value: str | list | None) -> list:
    """Return the files of a key, which has one, a list, or none."""
    return value if isinstance(value, list) else [value] if value else []


def file_message(path: str, made: Container[str]) -> str | None:
    """Return what is wrong with the path of an input, or None."""
    if path in made or os.path.isfile(path):
        return None
    shown = printable(path)
    if os.path.isdir(path):
        return f"{shown} is a folder: write the path of a file"
    return f"{shown} does not exist: write a path relative to the folder in which snakemake starts"


def printable(path: str) -> str:
    """Return a path for a message of one line."""
    return path if path.isprintable() else repr(path)


def explain(error, schema: Mapping) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the key and the message for a validation error."""
    path = tuple(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties":
        for key in error.instance:
            if key not in error.schema["properties"]:
                yield (*path, str(key)), unknown_message(str(key), error.schema["properties"])
    elif error.validator == "required":
        for key in error.validator_value:
            if key not in error.instance:
                write = error.schema["properties"][key]["write"]
                yield (*path, key), f"is missing: write {write}"
    else:
        yield path, f"{_shown(error.instance)} is not valid: write {error.schema['write']}"


def unknown_message(key: str, known: Iterable[str]) -> str:
    nearest = difflib.get_close_matches(key, known, n=1)
    if nearest:
        return f"is unknown: did you mean {nearest[0]}?"
    return f"is unknown: remove it, or write one of {', '.join(known)}"


def _shown(value) -> str:
    """Return a value as the user wrote it, as far as known."""
    if value is None:
        return "an empty value"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "a section of keys"
    return repr(value)


def validator(schema: Mapping):
    """Return a validator that rejects 1.0 and true as integers, and .nan and .inf as numbers.

    The programs would reject them.
    """
    types = Draft202012Validator.TYPE_CHECKER

    def is_whole(_, value) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    def is_finite(_, value) -> bool:
        return types.is_type(value, "number") and math.isfinite(value)

    stricter = types.redefine_many({"integer": is_whole, "number": is_finite})
    return extend(Draft202012Validator, type_checker=stricter)(schema)
