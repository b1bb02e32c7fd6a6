"""Make one HTML page of the tables of `bwarp offtargets`: guides by rank, with their worst sites.

The page holds data as JSON; `offtarget_page.html` is the page around it, which shows and filters
them in the browser.
"""

import html
import json
import os
import re
from pathlib import Path

from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.report.worst_sites import GuideSites, select_worst

#: By default, rows of a group of sites of a guide, and rows of a group on the page.
_ROWS_EACH, _ROWS_IN_ALL = 25, 5000


def offtarget_page(
    sites: str | os.PathLike,
    guides: str | os.PathLike,
    rows: int | None = None,
    link: str | None = None,
) -> str:
    """Return a page with the guides of two tables, best first, and the worst sites of each.

    Parameters
    ----------
    sites, guides : path
        OUT.tsv and OUT.guides.tsv.
    rows : int, optional
        Maximum number of rows per guide and group of `select_worst`; 25 by default, but fewer if
        there are more than 200 guides.
    link : str, optional
        Address of a genome browser with {contig}, {start} and {end}.

    Raises
    ------
    InputError
        If a file is not such a table.
    """
    listed = _read_guides(guides)
    if rows is None:
        rows = max(1, min(_ROWS_EACH, _ROWS_IN_ALL // max(1, len(listed))))
    columns, found = select_worst(sites, [guide["guide"] for guide in listed], rows)
    described = [_described(*pair) for pair in zip(listed, found, strict=True)]
    name = os.fsencode(sites).decode(errors="replace")
    data = {
        "table": name,
        "rows": rows,
        "link": link,
        "columns": columns,
        "populations": list(dict.fromkeys(key for one in found for key in one.added if key)),
        "guides": sorted(described, key=_rank),
    }
    # No text may end the script or begin a comment.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    before, _, after = page.partition("@DATA@")
    return before.replace("@TITLE@", html.escape(f"Off-targets: {name}")) + text + after


def _read_guides(path: str | os.PathLike) -> list[dict[str, str]]:
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    head, *lines = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    needed = {"guide", "sequence", "n0", "sites", "cfd_specificity", "mit_specificity"}
    if not needed <= set(head) or any(len(line) != len(head) for line in lines):
        raise InputError(
            f"{path}: not a table of guides: give a file that bwarp offtargets wrote as "
            "OUT.guides.tsv"
        )
    return [dict(zip(head, line, strict=True)) for line in lines]


def _described(guide: dict[str, str], sites: GuideSites) -> dict:
    """Return what the page says about a guide."""
    cfd, specificity = None, {}
    if guide["cfd_specificity"]:
        cfd = float(guide["cfd_specificity"])
        specificity = {name: cfd / (1 + cfd * added) for name, added in sites.added.items()}
    mismatches = [int(count) for name, count in guide.items() if re.fullmatch(r"n\d", name)]
    return {
        "name": guide["guide"],
        "sequence": guide["sequence"],
        "mismatches": mismatches,
        "bulges": int(guide["sites"]) - sum(mismatches),
        "sites": sites.n_sites,
        "alternative": sites.n_alternative,
        "cfd": cfd,
        "mit": guide["mit_specificity"],
        "specificity": specificity,
        "lost": sites.lost,
        "n_lost": sites.n_lost,
        "worst": sites.worst,
    }


def _rank(guide: dict) -> tuple:
    """Return the key that sorts guides: by specificity, then by sites with few mismatches."""
    return (guide["cfd"] is None, -(guide["cfd"] or 0), guide["mismatches"], guide["bulges"])
