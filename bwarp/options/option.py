"""What an option is, what may be given as one, and a task, which is a set of options.

What may be given is a kind of value, such as `Whole`: `write` completes the sentence "write ..." of
a message, `rule` is a part of the JSON schema of the configuration, `argument` is what
`add_argument` takes, and `check` refuses what Python code gives.

Functions of the library write their parameters out, so that editors see them; a test compares
their names and defaults with the declarations.
"""

import argparse
import operator
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bwarp.errors import UsageError

#: Where an option is known, or required, if not everywhere.
PROGRAM, CONFIGURATION = "program", "configuration"


class Whole(NamedTuple):
    """A whole number within bounds, or a word that stands for the default.

    Attributes
    ----------
    least, most : int
    note : str
        What `least` means, such as "no limit".
    word : str
        A word that may be written instead, such as "auto"; it stands for None.
    multiple : int
        The number is a multiple of this.
    metavar : str
        What `--help` calls the number.
    """

    least: int
    most: int
    note: str = ""
    word: str = ""
    multiple: int = 1
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
        return {"type": self.parse, "metavar": self.metavar}

    def parse(self, text: str) -> int | None:
        """The number that was typed, None for the word."""
        try:
            value = int(text)
        except ValueError:
            value = text
        try:
            return self.check(repr(text), value)
        except UsageError as error:
            raise argparse.ArgumentTypeError(error) from None

    def check(self, shown: str, value: Any) -> int | None:
        """A number of any type of whole numbers; `shown` begins the message about another value."""
        if self.word and isinstance(value, str) and value == self.word:
            return None
        try:
            number = None if isinstance(value, bool) else operator.index(value)
        except TypeError:
            number = None
        in_bounds = number is not None and self.least <= number <= self.most
        if in_bounds and number % self.multiple == 0:
            return number
        bounds = f"{self.least} to {self.most}" + (f", or {self.word}" if self.word else "")
        if self.multiple > 1:
            raise UsageError(f"{shown} is not a multiple of {self.multiple} from {bounds}")
        raise UsageError(f"{shown} is not a whole number from {bounds}")


class Penalty(NamedTuple):
    """A positive number that stands for the same score below 0."""

    least: int
    most: int

    def argument(self) -> dict:
        penalty = Whole(self.least, self.most)
        return {"type": lambda text: -penalty.parse(text), "metavar": "N"}


class OneOf(NamedTuple):
    """One of some words or numbers, in the order in which they are shown."""

    words: tuple

    @property
    def write(self) -> str:
        # YAML reads a plain on or off as true or false.
        quoted = [word for word in self.words if word in ("on", "off")]
        plain = listed(str(word) for word in self.words if word not in quoted)
        return f"{plain}, or {listed(quoted)} in quotes" if quoted else plain

    def rule(self) -> dict:
        return {"enum": list(self.words)}

    def argument(self) -> dict:
        number = {} if isinstance(self.words[0], str) else {"type": type(self.words[0])}
        return {"choices": self.words, **number}

    def check(self, shown: str, value: Any) -> Any:
        """One of the words; `shown` begins the message about another value."""
        if value not in self.words:
            raise UsageError(f"{shown} is not one of {', '.join(map(str, self.words))}")
        return value


class YesNo(NamedTuple):
    """True where the flag is given."""

    write: str = "true or false"

    def rule(self) -> dict:
        return {"type": "boolean"}

    def argument(self) -> dict:
        return {"action": "store_true"}


class Text(NamedTuple):
    """A text.

    Attributes
    ----------
    metavar : str
        What `--help` calls it.
    write : str
        Completes "write ...", of a text that stands in a configuration.
    pattern : str
        What a text in a configuration matches.
    parse : function, optional
        Makes a value of what was typed, or raises UsageError.
    also : dict, optional
        The rule of what a configuration may hold instead of a text, such as a number.
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
        return {"metavar": self.metavar, **({"type": self._parsed} if self.parse else {})}

    def _parsed(self, text: str) -> Any:
        try:
            return self.parse(text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(error) from None


class File(NamedTuple):
    """A file that is read; `holds` says what is in it, such as "a BED file, plain or gz"."""

    metavar: str
    holds: str = "a file"

    @property
    def write(self) -> str:
        return f"the path of {self.holds}"

    def rule(self) -> dict:
        return {"type": "string", "minLength": 1, "file": True}

    def argument(self) -> dict:
        return {"metavar": self.metavar}


Value = Whole | Penalty | OneOf | YesNo | Text | File


class Option(NamedTuple):
    """An option of a task.

    Attributes
    ----------
    name : str
        The key of the configuration and the parameter in Python; `--name` with dashes, or `-k` for
        a name of one letter.
    value : Value
    help : str
        What `--help` and the tables say. Code stands in ``, other options as `--max-hits`.
    default : object, optional
        None where there is none, or `unset` or the word of `value` says what is done.
    unset : str
        What stands in place of a default, such as "estimated from the first pairs".
    short : str
        More flags, such as "-v".
    required : bool or str
        `CONFIGURATION` where only a section of the configuration must have it.
    only : str
        `PROGRAM` or `CONFIGURATION`, where it is not for both.
    in_program, in_workflow : str
        What `--help`, or the tables, say besides.
    many : bool
        Several values may be given.
    dest : str
        What the parsed option is called, if not by its name.
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
        """The default as `--help` and the tables write it."""
        if self.default is None:
            return self.unset or getattr(self.value, "word", "")
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    def add_to(self, parser) -> None:
        """Add it to a parser, or to a group of one."""
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
        """The rule of its key in the configuration."""
        default = getattr(self.value, "word", "") if self.default is None else self.default
        has_default = {"default": default} if default not in (None, "") else {}
        return self.value.rule() | has_default | {"write": self.value.write}

    def row(self, section: str) -> list[str]:
        """Its row in the tables: key, default, value, effect."""
        default = "required" if self.required else "none"
        if "default" in self.rule():
            default = f"`{self.shown_default}`"
        elif self.unset:
            default = self.unset
        named = re.sub(r"--([a-z][a-z-]+)", lambda found: found[1].replace("-", "_"), self.help)
        return [f"`{section}{self.name}`", default, self.value.write, named + self.in_workflow]

    def check(self, value: Any) -> Any:
        """A value that was given in Python; None where there is no default.

        Raises
        ------
        UsageError
            For another one than is allowed.
        """
        if value is None and self.default is None:
            return None
        return self.value.check(f"{self.name} {value!r}", value)

    def allows(self, value: Any) -> bool:
        """Return whether `check` takes a value."""
        try:
            self.check(value)
        except UsageError:
            return False
        return True


def yes_no(name: str, help: str, **more) -> Option:
    """An option that is off if it is not given."""
    return Option(name, YesNo(), help, False, **more)


class Task(NamedTuple):
    """The options of a task by the groups of `--help`; those of the group "" have no title."""

    groups: dict[str, tuple[Option, ...]]

    @property
    def options(self) -> list[Option]:
        return [option for group in self.groups.values() for option in group]

    @property
    def keys(self) -> list[Option]:
        """The options that the configuration knows."""
        return [option for option in self.options if option.is_key]

    def __getitem__(self, name: str) -> Option:
        return next(option for option in self.options if option.name == name)

    def only(self, *names: str) -> list[Option]:
        """Some of the options, for a program of one step."""
        return [self[name] for name in names]

    def rule(self) -> dict:
        """The rule of its section in the configuration, a part of a JSON schema."""
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
    """a, b or c."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last
