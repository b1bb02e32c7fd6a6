"""Options, the kinds of value that they take, and tasks, which are sets of options.

A kind of value is a class such as `Whole`: `write` completes the sentence "write ..." of a message,
`rule` returns a part of the JSON schema of the configuration, `argument` the keywords of
`add_argument`, and `check` validates a value given in Python.

Functions of the library spell out their parameters so that editors show them; a test compares names
and defaults with the declarations.
"""

import argparse
import operator
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from bwarp.errors import UsageError

#: Where an option exists, or is required, if not everywhere.
PROGRAM, CONFIGURATION = "program", "configuration"


class Whole(NamedTuple):
    """A whole number within bounds, or a word that selects the default.

    Attributes
    ----------
    least, most : int
    note : str
        Meaning of `least`, such as "no limit".
    word : str
        Word accepted instead of a number, such as "auto"; it means None.
    multiple : int
        The number must be a multiple of this.
    negated : bool
        The negative of a typed number is meant, such as a penalty for a score.
    metavar : str
        Name of the number in `--help`.
    """

    least: int
    most: int
    note: str = ""
    word: str = ""
    multiple: int = 1
    negated: bool = False
    metavar: str = "N"

    @property
    def write(self) -> str:
        note = f" ({self.note})" if self.note else ""
        kind = "a whole number" if self.multiple == 1 else f"a multiple of {self.multiple}"
        number = f"{kind} from {self.least}{note} to {self.most}"
        return f"{self.word}, or {number}" if self.word else number

    def rule(self) -> dict:
        number = {"type": "integer", "minimum": self.least, "maximum": self.most}
        number |= {"multipleOf": self.multiple} if self.multiple > 1 else {}
        return {"anyOf": [{"const": self.word}, number]} if self.word else number

    def argument(self) -> dict:
        return {"type": _typed(self.parse), "metavar": self.metavar}

    def parse(self, text: str) -> int | None:
        """Parse a typed number; return None for the word."""
        value: int | str = text
        with suppress(ValueError):
            value = int(text)
        number = self.check(repr(text), value)
        return -number if self.negated and number else number

    def check(self, shown: str, value: Any) -> int | None:
        """Return an integer of any integer type as int; `shown` begins the error message."""
        if self.word and isinstance(value, str) and value == self.word:
            return None
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        if number is not None and self.least <= number <= self.most and not number % self.multiple:
            return number
        bounds = f"{self.least} to {self.most}" + (f", or {self.word}" if self.word else "")
        if self.multiple > 1:
            raise UsageError(f"{shown} is not a multiple of {self.multiple} from {bounds}")
        raise UsageError(f"{shown} is not a whole number from {bounds}")


class OneOf(NamedTuple):
    """One of several words or numbers, in the order in which they are shown."""

    words: tuple

    @property
    def write(self) -> str:
        # YAML reads on or off without quotes as true or false.
        quoted = [word for word in self.words if word in ("on", "off")]
        plain = listed(str(word) for word in self.words if word not in quoted)
        return f"{plain}, or {listed(quoted)} in quotes" if quoted else plain

    def rule(self) -> dict:
        return {"enum": list(self.words)}

    def argument(self) -> dict:
        number = {} if isinstance(self.words[0], str) else {"type": type(self.words[0])}
        return {"choices": self.words, **number}

    def check(self, shown: str, value: Any) -> Any:
        """Return the value if it is one of the words; `shown` begins the error message."""
        if value not in self.words:
            raise UsageError(f"{shown} is not one of {', '.join(map(str, self.words))}")
        return value


class YesNo(NamedTuple):
    """A flag: true if it is given."""

    write: str = "true or false"

    def rule(self) -> dict:
        return {"type": "boolean"}

    def argument(self) -> dict:
        return {"action": "store_true"}


#: Name of the value of an option that takes the options of another program, in quotes.
QUOTED_OPTIONS = "OPTIONS"


class Text(NamedTuple):
    """A string.

    Attributes
    ----------
    metavar : str
        Name of the value in `--help`.
    write : str
        Completes the message "write ..." about a string in a configuration.
    pattern : str
        Regular expression that a string in a configuration must match.
    parse : function, optional
        Convert the typed string to a value, or raise UsageError.
    also : dict, optional
        Rule for another type that a configuration may hold, such as a number.
    """

    metavar: str
    write: str = ""
    pattern: str = ""
    parse: Callable[[str], Any] | None = None
    also: dict | None = None

    def rule(self) -> dict:
        text = {"type": "string"} | (
            {"pattern": self.pattern} if self.pattern else {"minLength": 1}
        )
        return {"anyOf": [self.also, text]} if self.also else text

    def argument(self) -> dict:
        return {"metavar": self.metavar} | ({"type": _typed(self.parse)} if self.parse else {})

    def check(self, shown: str, value: Any) -> str:
        """Return the value if it is a string; `shown` begins the error message."""
        if not isinstance(value, str):
            raise UsageError(f"{shown} is not a str")
        return value


def _typed(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser whose errors argparse reports with the name of the option."""

    def parse_typed(text: str) -> Any:
        try:
            return parse(text)
        except (UsageError, ValueError) as error:
            raise argparse.ArgumentTypeError(error) from None

    return parse_typed


class File(NamedTuple):
    """An input file; `holds` describes its contents, such as "a BED file, plain or gz"."""

    metavar: str
    holds: str = "a file"

    @property
    def write(self) -> str:
        return f"the path of {self.holds}"

    def rule(self) -> dict:
        return {"type": "string", "minLength": 1, "file": True}

    def argument(self) -> dict:
        return {"metavar": self.metavar}


Value = Whole | OneOf | YesNo | Text | File


class Option(NamedTuple):
    """An option of a task.

    Attributes
    ----------
    name : str
        Key in the configuration and parameter in Python; the flag is `--name` with dashes, or
        `-k` for a name of one letter.
    value : Value
    help : str
        Text in `--help` and the tables, with code in ``, and other options as `--max-hits`.
    default : object, optional
        None if there is no default, or if `unset` or the word of `value` describes it.
    unset : str
        Text shown instead of a default, such as "estimated from the first pairs".
    short : str
        Further flags, such as "-v".
    required : bool or str
        `CONFIGURATION` if only a section of the configuration requires it.
    only : str
        `PROGRAM` or `CONFIGURATION` if it exists in only one of them.
    in_program, in_workflow : str
        Text added in `--help`, or in the tables.
    many : bool
        Accept several values.
    dest : str
        Name of the parsed attribute, if not `name`.
    """

    name: str
    value: Value
    help: str
    default: Any = None
    unset: str = ""
    short: str = ""
    required: bool | str = False
    only: str = ""
    in_program: str = ""
    in_workflow: str = ""
    many: bool = False
    dest: str = ""

    @property
    def flags(self) -> list[str]:
        flag = f"-{self.name}" if len(self.name) == 1 else f"--{self.name.replace('_', '-')}"
        return [*self.short.split(), flag]

    @property
    def is_key(self) -> bool:
        return self.only != PROGRAM

    @property
    def shown_default(self) -> str:
        """Return the default as shown in `--help` and the tables."""
        if self.default is None:
            return self.unset or getattr(self.value, "word", "")
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    def add_to(self, parser) -> None:
        """Add the option to a parser or an argument group."""
        given = self.value.argument()
        text = (self.help + self.in_program).replace("`", "").replace("%", "%%")
        if self.shown_default and "action" not in given:
            text += f" (default: {self.shown_default})"
        if self.many:
            given |= {"nargs": "+", "action": "extend", "default": []}
        elif "action" not in given:
            given |= {"default": self.default}
        dest = self.dest or self.name
        required = self.required is True
        parser.add_argument(*self.flags, dest=dest, required=required, help=text, **given)

    def rule(self) -> dict:
        """Return the schema rule of its key in the configuration."""
        default = getattr(self.value, "word", "") if self.default is None else self.default
        has_default = {"default": default} if default not in (None, "") else {}
        return self.value.rule() | self._list_rule() | has_default | {"write": self.write}

    @property
    def write(self) -> str:
        """Return what the value of its key is."""
        return self.value.write + (", or a list of paths" if self._list_rule() else "")

    def _list_rule(self) -> dict:
        """Return the additions to the schema rule if the key may have several files."""
        if not (self.many and isinstance(self.value, File)):
            return {}
        return {"type": ["string", "array"], "items": self.value.rule(), "minItems": 1}

    def row(self, section: str) -> list[str]:
        """Return its row in the tables: key, default, value, effect."""
        default = "required" if self.required else "none"
        if "default" in self.rule():
            default = f"`{self.shown_default}`"
        elif self.unset:
            default = self.unset
        named = re.sub(r"--([a-z][a-z-]+)", lambda found: found[1].replace("-", "_"), self.help)
        return [f"`{section}{self.name}`", default, self.write, named + self.in_workflow]

    def check(self, value: Any) -> Any:
        """Validate a value given in Python; None is valid if there is no default.

        Raises
        ------
        UsageError
            If the value is not allowed.
        """
        unset = value is None and self.default is None
        if unset or not isinstance(self.value, Whole | OneOf | Text):
            return value
        return self.value.check(f"{self.name} {value!r}", value)

    def allows(self, value: Any) -> bool:
        """Return whether `check` accepts a value."""
        try:
            self.check(value)
        except UsageError:
            return False
        return True


def yes_no(name: str, help: str, **more) -> Option:
    """Return the option for a flag."""
    return Option(name, YesNo(), help, False, **more)


class Task:
    """The options of a task by group of `--help`; the group "" has no title."""

    def __init__(self, groups: dict[str, tuple[Option, ...]]):
        self.groups = groups

    @property
    def options(self) -> list[Option]:
        return [option for group in self.groups.values() for option in group]

    @property
    def keys(self) -> list[Option]:
        """Options that are keys of the configuration."""
        return [option for option in self.options if option.is_key]

    def __getitem__(self, name: str) -> Option:
        return next(option for option in self.options if option.name == name)

    def only(self, *names: str) -> list[Option]:
        """Return the named options, for a program that runs one step."""
        return [self[name] for name in names]

    def rule(self) -> dict:
        """Return the schema rule of its section in the configuration."""
        required = [option.name for option in self.keys if option.required]
        shown = [option.name for option in self.keys][:3]
        return {
            "type": "object",
            "additionalProperties": False,
            **({"required": required} if required else {"default": {}}),
            "write": f"a section with keys such as {', '.join(shown[:-1])} and {shown[-1]}",
            "properties": {option.name: option.rule() for option in self.keys},
        }


def listed(words: Iterable[str]) -> str:
    """Join words as "a, b or c"."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
