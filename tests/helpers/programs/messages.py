"""The messages of the code to users, read from its source."""

import ast
import re
from pathlib import Path

from bwarp.counted import counted

#: The error classes, and the text that they add to a message.
ERRORS = {
    "InputError": "",
    "UsageError": "",
    "TooLittleMemoryError": "",
    "GpuMemoryError": ": use --backend cpu, or a GPU with more memory",
}
#: Functions and classes for notes, warnings, and problems of a configuration.
NOTES = (
    "say",
    "write_line",
    "note",
    "warn",
    "print",
    "Problem",
    "progress",
    "ArgumentTypeError",
)


def text_of(node) -> str:
    """Return a message as in the pages: … for each value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Call):
        return text_of(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "counted":
        nouns = [argument.value for argument in node.args[1:] if isinstance(argument, ast.Constant)]
        return counted(2, *nouns).replace("2", "…") if nouns else "… …"
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "…"


def calls(checkout: Path, names) -> list[tuple[str, ast.Call]]:
    """Yield calls of named functions in the library and the programs, and their locations."""
    files = [*checkout.glob("bwarp/**/*.py"), *checkout.glob("scripts/*.py")]
    return [
        (f"{path.relative_to(checkout)}:{node.lineno}", node)
        for path in [*files, *checkout.glob("workflow/lib/**/*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names and node.args
    ]


def messages(checkout: Path) -> dict[str, str]:
    """Return all error messages of the library and the programs, and their locations."""
    return {
        re.sub("…+", "…", text_of(node.args[0])) + ERRORS[node.func.id]: where
        for where, node in calls(checkout, ERRORS)
    }


def notes(checkout: Path) -> dict[str, str]:
    """Return all notes and warnings, and their locations."""
    return {
        text_of(argument): where for where, node in calls(checkout, NOTES) for argument in node.args
    }


def sentences(checkout: Path) -> dict[str, str]:
    """Return the messages that are not texts of errors."""
    found = {}
    for path in ("bwarp/errors.py", "bwarp/cli/error_sentences.py", "bwarp/runtime/signals.py"):
        for node in ast.walk(ast.parse((checkout / path).read_text())):
            values = node.values if isinstance(node, ast.Dict) else [getattr(node, "value", None)]
            if isinstance(node, ast.Return | ast.Assign | ast.Dict):
                for value in values:
                    if isinstance(value, ast.Constant | ast.JoinedStr):
                        found[text_of(value)] = path
    return {text: where for text, where in found.items() if len(text.replace("…", "")) > 10}
