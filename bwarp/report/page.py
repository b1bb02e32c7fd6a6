"""The HTML pages of reports: each is one file that needs no network, no script and no font.

They are readable on light and dark screens, on a telephone, and in print.
"""

from collections.abc import Iterable, Sequence
from html import escape

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root {{ color-scheme: light; --text: #222; --back: #fff; --soft: #5f5f5f; --line: #ccc; }}
@media screen and (prefers-color-scheme: dark) {{
:root {{ color-scheme: dark; --text: #e8e8e8; --back: #16181b; --soft: #a8a8a8; --line: #4a4a4a; }}
}}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 1.5em auto; padding: 0 1em; max-width: 1250px;
  color: var(--text); background: var(--back); overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5em; margin-bottom: .2em; }}
h2 {{ font-size: 1.15em; margin: 0 0 .3em; }}
.soft {{ color: var(--soft); font-size: .93em; }}
.warning {{ border-left: 4px solid #D55E00; padding: .2em 0 .2em .8em; }}
.wide {{ overflow: auto; max-height: 75vh; margin: 1em 0; }}
table {{ border-collapse: collapse; font-size: .93em; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25em 1.1em .25em 0; text-align: left; white-space: nowrap; }}
.numbers th {{ white-space: normal; overflow-wrap: normal; }}
.numbers td + td, .numbers th + th {{ text-align: right; }}
thead th {{ position: sticky; top: 0; background: var(--back); vertical-align: bottom;
  box-shadow: inset 0 -2px var(--line); }}
tbody tr {{ border-bottom: 1px solid var(--line); }}
.numbers td:first-child {{ white-space: normal; min-width: 12em; max-width: 20em; }}
.charts {{ columns: 2 520px; column-gap: 2.5em; margin: 2em 0; }}
section {{ break-inside: avoid; padding-bottom: 1.2em; }}
.charts svg {{ width: 100%; height: auto; max-width: 540px; }}
.legend {{ list-style: none; margin: 0 0 .4em; padding: 0; font-size: .93em; }}
.legend li {{ display: inline-block; margin-right: 1.2em; }}
.legend svg {{ width: 22px; height: 10px; margin-right: .4em; }}
@media print {{
body {{ margin: 0; max-width: none; font-size: 11px; }}
table {{ font-size: .82em; }}
th, td {{ padding-right: .6em; }}
.wide {{ overflow: visible; max-height: none; }}
.charts {{ columns: 2; column-gap: 1.5em; }}
}}
</style></head><body>
<h1>{title}</h1>
{body}
</body></html>
"""


def page(title: str, body: str) -> str:
    """Return a page with a title, which is text, and a body, which is HTML."""
    text = _PAGE.format(title=escape(title), body=body)
    # Only ASCII, for any locale.
    return text.encode("ascii", "xmlcharrefreplace").decode()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of texts; all columns but the first are numbers."""
    lines = [_row(head, "th"), *(_row(row, "td") for row in rows)]
    return (
        f'<div class="wide"><table class="numbers"><thead>{lines[0]}</thead><tbody>\n'
        + "\n".join(lines[1:])
        + "\n</tbody></table></div>"
    )


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def section(title: str, picture: str, sentence: str, explanation: str) -> str:
    """Return a picture, which is HTML, with its title, what it shows, and how to read it."""
    return (
        f"<section><h2>{escape(title)}</h2>\n{picture}\n<p>{escape(sentence)}</p>\n"
        f'<p class="soft">{escape(explanation)}</p></section>'
    )


def side_by_side(sections: Iterable[str]) -> str:
    """Return sections in two columns if the screen has space for them, omitting empty ones."""
    return '<div class="charts">\n' + "\n".join(filter(None, sections)) + "\n</div>"
