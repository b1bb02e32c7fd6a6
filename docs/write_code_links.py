#!/usr/bin/env python3
"""Update line numbers of links to the code, and quoted definitions, in the pages.

    [`score_chunk`](bwarp/mapping/pipeline.py#L95)    leads to where the file defines that name

    <!-- code of bwarp/index/locate_cuda.py: step_rows -->
    ```python
    ...                                               is the exact definition of that name
    ```

With --check nothing is written; the exit code says whether all pages are up to date. A name that
its file does not define is an error in both cases.
"""

import ast
import os
import re
import sys
import textwrap
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGES = (CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md")))
LINK = re.compile(r"\[`(?P<name>[\w.]+)`\]\((?P<path>[^)#\s]+\.py)#L\d+\)")
QUOTE = re.compile(
    r"^<!-- code of (?P<path>\S+): (?P<names>[\w., ]+) -->\n```python\n.*?^```\n",
    re.MULTILINE | re.DOTALL,
)


def main() -> None:
    for page in PAGES:
        old = page.read_text()
        new = renewed(old, page)
        if new != old and "--check" in sys.argv[1:]:
            sys.exit(f"{page.relative_to(CHECKOUT)} is old: run python docs/{Path(__file__).name}")
        if new != old:
            page.write_text(new)


def renewed(text: str, page: Path) -> str:
    """Return the text of a page with current line numbers and definitions."""

    def link(found: re.Match) -> str:
        name, path = found["name"], found["path"]
        first, _ = span(os.path.normpath(page.parent / path), name)
        return f"[`{name}`]({path}#L{first})"

    def quote(found: re.Match) -> str:
        path = CHECKOUT / found["path"]
        spans = [span(str(path), name.strip()) for name in found["names"].split(",")]
        lines = path.read_text().splitlines(keepends=True)
        parts = (textwrap.dedent("".join(lines[first - 1 : last])) for first, last in spans)
        code = "\n\n".join(parts)
        return f"<!-- code of {found['path']}: {found['names']} -->\n```python\n{code}```\n"

    return QUOTE.sub(quote, LINK.sub(link, text))


def span(path: str, name: str) -> tuple[int, int]:
    """Return the first and last line of the definition of a name, including decorators."""
    for node, defined in definitions(path):
        if defined == name:
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
            return first, node.end_lineno
    sys.exit(f"{os.path.relpath(path, CHECKOUT)} does not define {name}: name another in the pages")


@cache
def definitions(path: str) -> list[tuple[ast.stmt, str]]:
    """Return the functions, classes, methods (`Class.method`) and names that a file defines."""
    if not os.path.exists(path):
        sys.exit(f"{os.path.relpath(path, CHECKOUT)} is not there: name another file in the pages")
    found = []
    for node in ast.parse(Path(path).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append((node, node.name))
            found += [
                (inner, f"{node.name}.{inner.name}")
                for inner in node.body
                if isinstance(inner, ast.FunctionDef)
            ]
        elif isinstance(node, ast.Assign):
            found += [(node, one.id) for one in node.targets if isinstance(one, ast.Name)]
    return found


if __name__ == "__main__":
    main()
