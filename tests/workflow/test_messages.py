"""docs/troubleshooting.md holds every error message of the code, and no other."""

import ast
import re

PAGE = "docs/troubleshooting.md"
#: The errors, and what they add to what they are given.
ERRORS = {
    "InputError": "",
    "UsageError": "",
    "GpuMemoryError": ": use --backend cpu, or a GPU with more memory",
}


def text_of(node) -> str:
    """A message as the page writes it: … for every value."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    if isinstance(node, ast.BinOp):
        return text_of(node.left) + text_of(node.right)
    return "…"


def messages(checkout) -> dict[str, str]:
    """Every message that the library and the programs can end in, and where it stands."""
    found = {}
    for path in [*checkout.glob("bwarp/**/*.py"), *checkout.glob("scripts/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", None) in ERRORS
                and node.args
            ):
                text = re.sub("…+", "…", text_of(node.args[0])) + ERRORS[node.func.id]
                found[text] = f"{path}:{node.lineno}"
    return found


def sentences(checkout) -> dict[str, str]:
    """What bwarp/cli/error_sentences.py says of the system's errors, and
    bwarp/runtime/signals.py of signals."""
    found = {}
    for path in ("bwarp/cli/error_sentences.py", "bwarp/runtime/signals.py"):
        for node in ast.walk(ast.parse((checkout / path).read_text())):
            value = getattr(node, "value", None)
            is_told = isinstance(node, ast.Return | ast.Assign)
            if is_told and isinstance(value, ast.Constant | ast.JoinedStr):
                found[text_of(value)] = path
    return {text: where for text, where in found.items() if len(text.replace("…", "")) > 10}


def phrases(checkout) -> list[str]:
    """What the first cells of the tables quote."""
    cells = re.findall(r"^\| (`.*?) \|", (checkout / PAGE).read_text(), re.MULTILINE)
    return [phrase for cell in cells for phrase in re.findall(r"`([^`]+)`", cell)]


def test_every_message_is_explained(checkout):
    known = phrases(checkout)
    every = messages(checkout) | sentences(checkout)
    assert len(every) > 150
    missing = [
        f"{where}: {text}"
        for text, where in every.items()
        if not any(phrase in text for phrase in known)
    ]
    assert not missing, f"{PAGE} does not explain:\n" + "\n".join(missing)


def test_no_message_is_explained_that_there_is_not(checkout):
    every = messages(checkout) | sentences(checkout)
    text = (checkout / PAGE).read_text()
    workflow = text[text.index("## The workflow") : text.index("## Any program")]
    stale = [
        phrase
        for phrase in phrases(checkout)
        if phrase not in workflow and not any(phrase in message for message in every)
    ]
    assert not stale, f"{PAGE} explains what no code says:\n" + "\n".join(stale)
