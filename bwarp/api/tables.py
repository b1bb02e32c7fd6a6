"""bwarp.read_table: any table that a program wrote, as a data frame.

.tsv, .tsv.gz     recognised by the names in the first line, whatever the ending
.bed, .bed.gz     contig, start, end, name, score, strand
.paf, .paf.gz     the columns of PAF, and a column a tag
.mums             matches as MUMmer prints them, whose positions count from 1
.m8               BLAST's names (outfmt 6)
.parquet          as TSV
.stats.json       the statistics of map, a row a unit
"""

import csv
import io
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bwarp.api.frames import DTYPES
from bwarp.api.statistics_frame import statistics_frame
from bwarp.errors import InputError, UsageError
from bwarp.io.file_blocks import read_blocks

__all__ = ["read_table"]

BED = ("contig", "start", "end", "name", "score", "strand")
PAF = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("target", "target_length", "target_start", "target_end"),
    *("matches", "columns", "mapping_quality"),
)
#: Tags of PAF, of find_mems.py, align_pairs.py and find_alignments.py.
TAGS = {"cg", "AS", "NM", "pr"}
BLAST = (
    *("qseqid", "sseqid", "pident", "length", "mismatch", "gapopen"),
    *("qstart", "qend", "sstart", "send", "evalue", "bitscore"),
)
MUMS = ("query", "strand", "contig", "reference_position", "query_position", "length")

_TEXTS = {"name", "target", "cg", "qseqid", "sseqid"} | {
    name for name, dtype in DTYPES.items() if dtype == "str"
}
_FLOATS = {"pident", "bitscore"} | {name for name, dtype in DTYPES.items() if dtype == "float64"}

#: Columns of off-targets whose cells may be empty: there is no score, or no cut without a PAM (-1).
_MAY_BE_EMPTY = {"cfd": np.nan, "mit": np.nan, "cut": -1}

_ALIGNMENTS = (".sam", ".bam", ".cram")
_TAB, _NEWLINE = 9, 10


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    """Read a table that a program of bwarp wrote, plain or compressed.

    Names are texts, even where they are numbers or "NA"; whole numbers are int64.

    Raises
    ------
    InputError
        With the line, for what no program of bwarp writes, or a file that was cut off.
    """
    ending = Path(os.fspath(path).removesuffix(".gz")).suffix
    if ending in _ALIGNMENTS:
        raise UsageError(f"{path}: these are alignments: read them with pysam.AlignmentFile")
    if ending == ".json":
        return statistics_frame(path)
    if ending == ".parquet":
        return _read_parquet(path)
    text = b"".join(read_blocks(path))
    if text and not text.endswith(b"\n"):
        raise InputError(f"{path}: the last line has no end: the file was cut off; write it again")
    if ending == ".bed":
        return _cells(path, text, BED)
    if ending == ".m8":
        return _cells(path, text, BLAST)
    if ending == ".paf":
        return _paf(path, text)
    if ending == ".mums" or text.startswith(b"> "):
        return _mums(path, text)
    header, _, rest = text.partition(b"\n")
    names = header.decode("utf-8", "replace").split("\t")
    _refuse_unknown(path, names)
    return _cells(path, rest, names, first_line=2)


def _refuse_unknown(path, names: Sequence[str]) -> None:
    for name in names:
        if name not in DTYPES:
            raise InputError(
                f"{path}: not a table of bwarp, for none has a column {name[:40]!r}: "
                "read other tables with pandas.read_csv"
            )


def _read_parquet(path) -> pd.DataFrame:
    with open(path, "rb") as file:
        try:
            table = pd.read_parquet(file)
        except (ValueError, OSError) as error:
            raise InputError(f"{path}: the Parquet file is damaged: write it again") from error
    _refuse_unknown(path, table.columns)
    return table.astype({name: DTYPES[name] for name in table.columns})


def _dtype(name: str) -> str:
    if name in _TEXTS:
        return "str"
    return "float64" if name in _FLOATS else "int64"


def _cells(path, text: bytes, names: Sequence[str], first_line: int = 1) -> pd.DataFrame:
    """Lines of cells with tabs between them; the first of them is so many in its file."""
    _check_lines(path, text, len(names), first_line)
    dtypes = {name: _dtype(name) for name in names}
    try:
        return _parsed(text, names, dtypes)
    except (ValueError, OverflowError):
        cells = _parsed(text, names, dict.fromkeys(names, "str"))
    for name in (name for name in names if dtypes[name] != "str"):
        pattern = r"-?\d{1,18}" if dtypes[name] == "int64" else r"[-+.\deE]+"
        good = cells[name].str.fullmatch(pattern)
        if name in _MAY_BE_EMPTY:
            good |= cells[name] == ""
        for row in np.flatnonzero(~good)[:1]:
            raise InputError(
                f"{path}, line {first_line + row}: {cells[name][row]!r} is not a number, as "
                f"column {name} has"
            )
    raise InputError(f"{path}: a number in it cannot be read: write the table again")


def _parsed(text: bytes, names: Sequence[str], dtypes: dict[str, str]) -> pd.DataFrame:
    empty = [name for name in names if name in _MAY_BE_EMPTY and dtypes[name] != "str"]
    table = pd.read_csv(
        io.BytesIO(text),
        sep="\t",
        header=None,
        names=list(names),
        dtype=dtypes | dict.fromkeys(empty, "float64"),
        index_col=False,
        keep_default_na=False,
        na_values={name: [""] for name in empty},
        na_filter=bool(empty),
        quoting=csv.QUOTE_NONE,
        skip_blank_lines=False,
        lineterminator="\n",
        encoding_errors="replace",
    )
    for name in empty:
        table[name] = table[name].fillna(_MAY_BE_EMPTY[name]).astype(dtypes[name])
    return table


def _check_lines(path, text: bytes, n_columns: int, first_line: int) -> None:
    """Refuse a line with more or fewer cells, of which pandas would fill up or drop some."""
    data = np.frombuffer(text, np.uint8)
    tabs = np.searchsorted(np.flatnonzero(data == _TAB), np.flatnonzero(data == _NEWLINE))
    cells = np.diff(tabs, prepend=0) + 1
    for row in np.flatnonzero(cells != n_columns)[:1]:
        raise InputError(
            f"{path}, line {first_line + row}: {cells[row]} cells under {n_columns} columns: "
            "the table was damaged; write it again"
        )


def _paf(path, text: bytes) -> pd.DataFrame:
    first = text.partition(b"\n")[0].decode("utf-8", "replace")
    tags = tuple(cell.partition(":")[0] for cell in first.split("\t")[len(PAF) :])
    tags = tags if TAGS.issuperset(tags) else ()
    columns = (*PAF, *tags)
    for tag in tags:
        kind = "Z" if tag == "cg" else "i"
        text = text.replace(f"\t{tag}:{kind}:".encode(), b"\t")
    return _cells(path, text, columns)


def _mums(path, text: bytes) -> pd.DataFrame:
    """Matches under headers: a line "> query" or "> query Reverse", then a match a line."""
    rows: list[tuple] = []
    query = strand = None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.decode("utf-8", "replace").split()
        if line.startswith(b"> ") and len(words) > 1:
            query, strand = words[1], "-" if words[2:3] == ["Reverse"] else "+"
            continue
        contig, *numbers = words if len(words) == 4 else ("", *words)
        if query is None or len(numbers) != 3 or not all(map(str.isdecimal, numbers)):
            raise InputError(
                f"{path}, line {number}: neither a header (> query) nor a match (position in the "
                "reference, position in the query, length), as MUMmer prints them"
            )
        rows.append((query, strand, contig, *map(int, numbers)))
    return pd.DataFrame(rows, columns=MUMS).astype({name: _dtype(name) for name in MUMS})
