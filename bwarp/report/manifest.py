"""Write a machine-readable manifest of a run, and HTML previews of tables."""

import hashlib
import html
import os
import platform
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from bwarp import __version__
from bwarp.counted import counted
from bwarp.report.page import page

#: Packages that affect results or their format.
_PACKAGES = ("numpy", "numba", "pysam", "snakemake")


def manifest(
    inputs: Iterable[str], outputs: Iterable[str], parameters: Mapping, threads: int = 1
) -> dict:
    """Return the manifest of a run: checksums of files, versions and parameters.

    Parameters
    ----------
    inputs, outputs : iterable of str
        Files, and folders of files such as an index.
    parameters : mapping
        The configuration at the start of the run.
    """
    with ThreadPoolExecutor(threads) as pool:
        described = [list(pool.map(_described, _files(paths))) for paths in (inputs, outputs)]
    return {
        "versions": {"bwarp": __version__, "python": platform.python_version(), **_versions()},
        "parameters": dict(parameters),
        "inputs": described[0],
        "outputs": described[1],
    }


def md5_of(path: str | os.PathLike) -> str:
    """Return the MD5 of a file, as printed by `md5sum`."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _described(path: str) -> dict:
    return {"path": path, "bytes": os.path.getsize(path), "md5": md5_of(path)}


def _files(paths: Iterable[str]) -> list[str]:
    """Return every file once, including those in folders."""
    files = []
    for path in dict.fromkeys(paths):
        if os.path.isdir(path):
            files += sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
        else:
            files.append(path)
    return files


def _versions() -> dict[str, str]:
    """Return the versions of the installed packages."""
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


# Previews: the first rows of a table as a small page, because tables can be large.


#: The maximum number of rows on a page.
SHOWN = 20

#: The maximum number of characters of a cell on a page.
_LONGEST = 60


def preview_page(title: str, table: BinaryIO, header: bool, picture: str = "") -> str:
    """Return an HTML page with the first `SHOWN` rows of a table and its number of rows.

    Parameters
    ----------
    title : str
    table : file of bytes
        Lines of cells separated by tabs or runs of spaces.
    header : bool
        Whether the first line names the columns.
    picture : str
        HTML above the table.
    """
    head = f"<thead>{_row(table.readline(), 'th')}</thead>" if header else ""
    rows = [_row(line, "td") for line in islice(table, SHOWN)]
    count = len(rows)
    while block := table.read(1 << 20):
        count += block.count(b"\n")
    shown = "all of them" if count <= SHOWN else f"the first {SHOWN} of them"
    said = f"{counted(count, 'row')}; here are {shown}." if count else "There are no rows."
    return page(
        title,
        f'{picture}<p>{said}</p>\n<div class="wide"><table>{head}<tbody>\n'
        + "\n".join(rows)
        + "\n</tbody></table></div>",
    )


def _row(line: bytes, tag: str) -> str:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    cells = text.split("\t") if "\t" in text else text.split()
    shown = (c if len(c) <= _LONGEST else c[: _LONGEST - 3] + "..." for c in cells)
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in shown)}</tr>"
