"""Parts of a self-contained HTML page."""

import base64
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path

__all__ = ["escape", "page", "paragraphs", "picture", "section", "table"]

#: One or more numbers with a unit.
_NUMBER = re.compile(r"[-+\d][\d.,/ ]*( ?(s|x|%|G|ppm))?( / [\d.,]+( s)?)*")

_STYLE = """
body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif;
       color: #222; max-width: 1080px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.7em; } h2 { font-size: 1.25em; margin-top: 2em; }
nav a { margin-right: 1em; white-space: nowrap; }
table { border-collapse: collapse; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: 3px 10px; border-bottom: 1px solid #ddd; }
th { border-bottom: 2px solid #999; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.older td { color: #777; } td.code { white-space: nowrap; }
.wide { overflow-x: auto; } figure { margin: 1em 0; } img { max-width: 100%; }
figcaption { color: #555; font-size: 13px; }
"""


def page(title: str, sections: Iterable[tuple[str, str, str]]) -> str:
    """Return a page of sections (name, heading, HTML) with links to them at the top."""
    sections = [part for part in sections if part[2]]
    links = " ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections)
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(title)}</h1><nav>{links}</nav>",
        *(section(*part) for part in sections),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def section(name: str, heading: str, body: str) -> str:
    return f'<section id="{name}"><h2>{escape(heading)}</h2>\n{body}\n</section>'


def paragraphs(*texts: str) -> str:
    return "\n".join(f"<p>{escape(text)}</p>" for text in texts)


def table(heads: list[str], rows: Iterable[Iterable], code=(), older=()) -> str:
    """Return a table; numbers are right-aligned, `code` columns unwrapped, `older` rows grey."""
    code, older = set(code), set(older)
    parts = ["<tr>" + "".join(f"<th>{escape(head)}</th>" for head in heads) + "</tr>"]
    for at, row in enumerate(rows):
        cells = []
        for column, cell in enumerate(map(str, row)):
            number = " class=number" if _NUMBER.fullmatch(cell) else ""
            kind = " class=code" if column in code else number
            cells.append(f"<td{kind}>{escape(cell)}</td>")
        parts.append(f"<tr{' class=older' * (at in older)}>{''.join(cells)}</tr>")
    return '<div class="wide"><table>\n' + "\n".join(parts) + "\n</table></div>"


def picture(svg: str | Path, caption: str) -> str:
    """Return an SVG picture embedded in the page."""
    text = svg.read_text() if isinstance(svg, Path) else svg
    data = base64.b64encode(text.encode()).decode()
    return (
        f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(caption)}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
