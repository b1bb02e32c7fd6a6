"""Retired words of this project do not return: the field has other words for them.

A pattern matches only the retired meaning, so "takes place" and "the right strand" are allowed. The
list applies to the pages, the help of every program, every message, and the files in `FOLDERS`. To
apply it to more, add a folder there, or a function to `SOURCES`.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from importlib import import_module

import pytest

from bwarp.cli.subcommands import GROUPS, SUBCOMMANDS
from tests.helpers.programs.messages import messages, notes, sentences

#: Folders and files whose comments, texts and names are checked.
FOLDERS = ("bwarp", "scripts", "workflow", "profiles", "config", "docs")

#: Patterns of retired words, and their replacements.
RETIRED = {
    r"\btold\b": "reported",
    # The option --max-places counts loci, as they are called everywhere else.
    r"(?<!--)(?<!max[- _])(?<!takes )(?<!take )(?<!takes the )(?<!in )(?<!first )\bplaces?\b"
    r"(?! (of|in) (his|her|their|its)|( scored| with gaps)\")": "alignment, hit, locus or position",
    r"(?<!\")\bchoices?\b|\bchoosing among\b": "primary selection, pairing or mapping quality",
    r"\bunseen\b|\bunlisted\b": "score bound of unlocated hits",
    r"\b(un)?settled?\b": "resolved, unresolved",
    r"\bbeg[ai]n anew\b": "searched again, reseeding",
    r"\b(dense|deep) (seeds|rounds?)\b": "seeding round",
    r"\bsecond sights?\b": "redundant hits",
    r"\bunpaid\b|\bpaid( for)?\b": "clip-penalised score, raw score",
    r"\bscores? of the others?\b": "suboptimal score (XS)",
    r"\bfurther places\b|\balternatives\b": "supplementary or secondary (XA) hits",
    r"\b(primary|supplementary|SAM|BAM) lines?\b(?! on| of)": "record",
    r"\bfirst lines? of (a|the) read": "primary record",
    r"\b(as|how|are|were|is|who is) right\b|\bright (reads?|ones|against|and wrong)\b|\bright %": (
        "correct, accuracy"
    ),
    r"\bwrong (reads?|ones|alignments?)\b": "incorrect",
    r"\bdistances? of (the )?(pairs?|ends)\b": "insert size",
    r"(?<!standard )(?<!\")\bdeviations?\b": "standard deviation",
    r"\b(exact|random|longer?|short(er)?|these|many|frequent) words?\b|\bwords? of (length|k|\w+ "
    r"(bases|letters))\b|\bwords with mismatches\b|\bplaces of words\b": "k-mer",
    r"(?<!Wheeler )\btransforms?\b": "BWT",
    r"\brows of the (index|transform)\b": "SA rows, SA interval",
    r"\bwalk(s|ed|ing)\b": "traceback, LF steps, or move along",
    r"\b(back)?tracking paths?\b|\bpath rooms?\b|\bbest paths?\b": "traceback, CIGAR",
    r"\bframe files?\b|\bfiles? of frames\b": "chunk file",
    r"\bcards?\b": "GPU",
    r"\b(\d[\d,]*|n|query|first|many|few|further) letters?\b|\bletters of (the )?(read|quer|gap)": (
        "bases, residues"
    ),
    r"-manieth\b": "every n-th",
    r"\bthousand million\b": "10^9",
    r"\bmade[- ]up\b|\bmakes? up (data|genomes|reads)\b": "simulated",
    r"\bthey are that\b|\bis luck\b": "a plain statement",
}


def without_code(text: str) -> str:
    """Return a page without code blocks, code spans, link targets and comments."""
    quoted = r"^```.*?^```|^ {4,}(?![-*\d]).*?$|<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)"
    # Line numbers do not change.
    return re.sub(
        quoted, lambda found: "\n" * found[0].count("\n"), text, flags=re.MULTILINE | re.DOTALL
    )


def pages(checkout) -> Iterator[tuple[str, str]]:
    """Yield the location and text of every page."""
    for path in (
        *(
            checkout / name
            for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "config/README.md")
        ),
        *sorted((checkout / "docs").glob("*.md")),
    ):
        yield str(path.relative_to(checkout)), without_code(path.read_text())


def helps(checkout) -> Iterator[tuple[str, str]]:
    """Yield the help of every program, under both of its names, and the list of programs."""
    yield "bwarp --help", " ".join([*GROUPS, *(command.does for command in SUBCOMMANDS.values())])
    typed = sys.argv
    for name, command in SUBCOMMANDS.items():
        for called in (f"bwarp {name}", f"{command.program}.py"):
            sys.argv = [called]
            try:
                module = import_module(f"bwarp.cli.{command.module}")
                said = module.parse_options().format_help()
            finally:
                sys.argv = typed
            yield f"{called} --help", " ".join(said.split())


def all_messages(checkout) -> Iterator[tuple[str, str]]:
    """Yield every message, note and warning."""
    for text, where in (messages(checkout) | sentences(checkout) | notes(checkout)).items():
        yield where, text


def sources(checkout) -> Iterator[tuple[str, str]]:
    """Yield comments, texts and defined names in the files of `FOLDERS`."""
    for folder in FOLDERS:
        for path in sorted((checkout / folder).rglob("*")):
            where = str(path.relative_to(checkout))
            if path.suffix == ".py":
                yield where, python_text(path.read_text())
            elif path.suffix in (".smk", ".yaml", ".tsv", ".rst"):
                yield where, path.read_text()


def python_text(source: str) -> str:
    """Return comments, texts, and defined names as words, of a Python file in their lines."""
    lines = [""] * (source.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for number, line in enumerate(token.string.split("\n"), token.start[0] - 1):
                lines[number] += f" {line.strip('#')}"
    for node in ast.walk(ast.parse(source)):
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        name = getattr(node, "name", None) or getattr(node, "arg", None)
        if stored or isinstance(node, ast.FunctionDef | ast.ClassDef | ast.arg):
            name = name or getattr(node, "id", None) or getattr(node, "attr", None)
            words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name or "").split("_")
            lines[node.lineno - 1] += f" ; {' '.join(words)}"
    return "\n".join(lines)


#: Functions that yield the checked texts.
SOURCES = (pages, helps, all_messages, sources)


def uses(text: str) -> list[str]:
    """Return the retired words in a text, each with its line and replacement."""
    return [
        f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0]!r}; write {instead}"
        for pattern, instead in RETIRED.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]


@pytest.mark.parametrize("source", SOURCES)
def test_retired_words_stay_away(checkout, source):
    found = [f"{where} {use}" for where, text in source(checkout) for use in uses(text)]
    assert not found, "\n".join(found)


def test_all_text_of_a_file_is_checked():
    said = python_text('def best_places(x):\n    """A place.\n\n    Told."""\n    y = 1  # paid\n')
    assert [use.split(";")[0] for use in uses(said)] == [
        "line 4: 'Told'", "line 1: 'places'", "line 2: 'place'", "line 5: 'paid'"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sentence",
    [
        "lower alignments are not told",
        "every place of a k-mer",
        "a read that is not settled",
        "with their clipped ends paid for",
        "how right it is",
        "two wrong reads",
        "mean and deviation of the distance of pairs",
        "random words of 20 bases",
        "both transforms",
        "the kernel walks along a target",
        "the GPU is a card",
        "a gap of 12 letters",
        "every so-manieth entry",
        "a thousand million hits",
    ],
)
def test_retired_words_are_found(sentence):
    assert uses(sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "The run takes place on a GPU.",
        "Use one option in place of the other.",
        "the first word of its header",
        "a wildcard to Snakemake",
        "its standard deviation",
        "the Burrows-Wheeler transform",
        "IUPAC letters other than N",
        "the right strand; the wrong file",
    ],
)
def test_everyday_words_may_stay(sentence):
    assert not uses(sentence)
