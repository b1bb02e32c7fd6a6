"""The beginning of a table of results as a small page, for reports: tables themselves are large."""

import html
from itertools import islice
from typing import BinaryIO

from bwarp.counted import counted

__all__ = ["SHOWN", "preview_page"]

#: Rows that a page shows.
SHOWN = 20

#: Letters of a cell that a page shows.
_LONGEST = 60

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .25em .9em .25em 0; text-align: left; white-space: nowrap; }}
thead th {{ border-bottom: 2px solid #888; }}
tbody tr {{ border-bottom: 1px solid #ddd; }}
</style></head><body>
<h1 style="font-size: 1.2em">{title}</h1>
<p>{count}</p>
<div class="wide"><table>{head}<tbody>
{rows}
</tbody></table></div>
</body></html>
"""


def preview_page(title: str, table: BinaryIO, header: bool) -> str:
    """An HTML page with the first `SHOWN` rows of a table and the number of all of them.

    Parameters
    ----------
    title : str
    table : file of bytes
        Lines of cells with tabs or runs of spaces between them.
    header : bool
        Whether the first line names the columns.
    """
    head = f"<thead>{_row(table.readline(), 'th')}</thead>" if header else ""
    rows = [_row(line, "td") for line in islice(table, SHOWN)]
    count = len(rows)
    while block := table.read(1 << 20):
        count += block.count(b"\n")
    shown = "all of them" if count <= SHOWN else f"the first {SHOWN} of them"
    return _PAGE.format(
        title=html.escape(title),
        count=f"{counted(count, 'row')}; here are {shown}." if count else "There are no rows.",
        head=head,
        rows="\n".join(rows),
    )


def _row(line: bytes, tag: str) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    cells = text.split("\t") if "\t" in text else text.split()
    shown = (c if len(c) <= _LONGEST else c[: _LONGEST - 3] + "..." for c in cells)
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in shown)}</tr>"
