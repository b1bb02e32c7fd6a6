"""docs/python.md: the blocks, run in order, print what the page shows."""

import ast
import contextlib
import io
import re
import shlex

from bwarp.cli.subcommands import SUBCOMMANDS
from tests.helpers.programs.programs_here import run_here

PAGE = "docs/python.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def shown(code: str, names: dict) -> str:
    """Return the output of a notebook cell: the value of its final expression."""
    body = ast.parse(code).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), PAGE, "exec"), names)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        if last is not None:
            print(eval(compile(ast.Expression(last.value), PAGE, "eval"), names))
    return said.getvalue()


def test_the_page_is_a_notebook(checkout, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    expected = []
    blocks = BLOCK.findall((checkout / PAGE).read_text())
    for kind, text in blocks:
        if kind == "sh":
            for line in text.splitlines():
                _, name, *arguments = shlex.split(line)
                done = run_here(SUBCOMMANDS[name].program, *arguments, folder=tmp_path)
                assert done.rc == 0, done.said
        elif kind == "python":
            expected.append(shown(text, names))
        else:
            assert kind == "text"
            assert text == expected.pop()
    assert expected == [""] * len(expected), "a block of the page does not say what it shows"
    assert sum(kind == "text" for kind, _ in blocks) > 8
