"""What the code says to a user, read from its source."""

import ast
import re
from pathlib import Path

from bwarp.counted import counted

#: The errors, and what they add to what they are given.
ERRORS = {
    "InputError": "",
    "UsageError": "",
    "GpuMemoryError": ": use --backend cpu, or a GPU with more memory",
}
#: Functions and classes that are given notes, warnings, and problems of a configuration.
NOTES = (
    "say",
    "write_line",
    "note",
    "warn",
    "print",
    "Problem",
    "progress",
    "ArgumentTypeError",
    "BwarpError",
)


def text_of(node) -> str:
    """A message as the pages write it: … for every value."""
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
    """Calls of functions of some names in the library and the programs, and where they stand."""
    files = [*checkout.glob("bwarp/**/*.py"), *checkout.glob("scripts/*.py")]
    return [
        (f"{path.relative_to(checkout)}:{node.lineno}", node)
        for path in [*files, *checkout.glob("workflow/lib/**/*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", None) in names and node.args
    ]


def messages(checkout: Path) -> dict[str, str]:
    """Every message that the library and the programs can end in, and where it stands."""
    return {
        re.sub("…+", "…", text_of(node.args[0])) + ERRORS[node.func.id]: where
        for where, node in calls(checkout, ERRORS)
    }


def notes(checkout: Path) -> dict[str, str]:
    """What is said besides, and where it stands."""
    return {
        text_of(argument): where for where, node in calls(checkout, NOTES) for argument in node.args
    }


def sentences(checkout: Path) -> dict[str, str]:
    """What bwarp/cli/error_sentences.py says of the system's errors, and
    bwarp/runtime/signals.py of signals."""
    found = {}
    for path in ("bwarp/cli/error_sentences.py", "bwarp/runtime/signals.py"):
        for node in ast.walk(ast.parse((checkout / path).read_text())):
            values = node.values if isinstance(node, ast.Dict) else [getattr(node, "value", None)]
            if isinstance(node, ast.Return | ast.Assign | ast.Dict):
                for value in values:
                    if isinstance(value, ast.Constant | ast.JoinedStr):
                        found[text_of(value)] = path
    return {text: where for text, where in found.items() if len(text.replace("…", "")) > 10}
