"""bwarp.read_table: read any table or statistics file that a program wrote as a data frame.

.tsv, .tsv.gz     recognised by the names in the first line; off-targets also in the columns of
                  Cas-OFFinder and CRISPOR
.txt, .tsv        guides of bwarp guides, without a header
.bed, .bed.gz     contig, start, end, name, score, strand
.paf, .paf.gz     the columns of PAF, and one column per tag
.mums             matches as printed by MUMmer, with 1-based positions
.m8               the columns of BLAST (outfmt 6)
.parquet          as TSV
.json             statistics (bwarp.api.statistics)
.flagstat, .idxstats, .stats, .mosdepth.*.txt, .regions.bed.gz
                  the files of map --qc
.txt              metrics of duplicates, as written by Picard
"""

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from bwarp.api.sequences import check_files
from bwarp.api.statistics import statistics_frame
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import read_blocks

# --------------------------------------------------------------------------------------------------
# Data frames with the columns of the tables. Names are str, whole numbers int64.


#: By type, the columns of all tables with a header, and the other columns that are not int64.
_COLUMNS = {
    "str": """
        query strand contig reference target cigar reason site sequence complete name
        guide guide_aligned site_aligned pam annotation left right forward reverse
        step engine of counted tttt worst_site worst_position worst_variants
        target_variants target_pam_change target_effect origin pam_change effect coordinates
        genome_names variants variant_ids phase populations samples id ref alt
        #Id Bulge_Type crRNA DNA Chromosome Direction
        guideId guideSeq offtargetSeq mismatchPos chrom locusDesc qseqid sseqid section LIBRARY
    """,
    "int64": """
        kmer_start position mismatches hits pair score query_start query_end target_end start end
        length windows distance locus_edits insertions deletions loci edits
        cut dna_bulge rna_bulge seed_mismatches alignment sites products
        forward_sites reverse_sites left_mismatches right_mismatches takes gives
        gc annotated_sites gains target_lost offset haplotypes genomes aligned lost
        Location Mismatches Bulge_Size mismatchCount bases min max
        UNPAIRED_READS_EXAMINED READ_PAIRS_EXAMINED SECONDARY_OR_SUPPLEMENTARY_RDS UNMAPPED_READS
        UNPAIRED_READ_DUPLICATES READ_PAIR_DUPLICATES READ_PAIR_OPTICAL_DUPLICATES
    """,
    "float64": """
        cfd mit cfd_specificity mit_specificity seconds worst_cfd worst_mit worst_frequency
        target_frequency worst_cfd_specificity worst_mit_specificity similarity identity evalue bits
        frequency reference_cfd reference_mit cfd_change mit_change
        mitOfftargetScore cfdOfftargetScore pident bitscore mean share value
        PERCENT_DUPLICATION ESTIMATED_LIBRARY_SIZE
    """,
}
#: The type of each column; only names of Cas-OFFinder have blanks.
DTYPES = {
    re.sub("^Bulge_", "Bulge ", name): dtype
    for dtype, names in _COLUMNS.items()
    for name in names.split()
}

#: Columns whose cells may be empty, and the values of empty cells.
_MAY_BE_EMPTY = {
    **dict.fromkeys(("cfd", "mit", "cfd_specificity", "mit_specificity", "seconds"), np.nan),
    **dict.fromkeys(("mitOfftargetScore", "cfdOfftargetScore"), np.nan),
    **dict.fromkeys(("frequency", "reference_cfd", "reference_mit"), np.nan),
    **dict.fromkeys(("cfd_change", "mit_change"), np.nan),
    **dict.fromkeys(("cut", "haplotypes", "aligned", "lost", "target_lost"), -1),
    **dict.fromkeys(("worst_cfd", "worst_mit", "worst_frequency", "target_frequency"), np.nan),
    **dict.fromkeys(("worst_cfd_specificity", "worst_mit_specificity"), np.nan),
    "ESTIMATED_LIBRARY_SIZE": np.nan,
}


def frame(columns: Sequence[str], parts: Iterable[Sequence]) -> pd.DataFrame:
    """Concatenate parts, each with one array or list per column, to a data frame."""
    whole: list[Sequence] = [*zip(*parts, strict=True)] or [[] for _ in columns]
    dtypes = _dtypes(columns).items()
    return pd.DataFrame(
        {name: _series(dtype, column) for (name, dtype), column in zip(dtypes, whole, strict=True)}
    )


def _series(dtype: str, parts: Sequence) -> pd.Series:
    kind = object if dtype == "str" else dtype
    values = np.concatenate([np.asarray(part, kind) for part in ((), *parts)])
    return pd.Series(values, dtype=dtype)


def frame_of(columns: dict[str, list]) -> pd.DataFrame:
    """Return columns as a data frame; None becomes the value of an empty cell."""
    dtypes = _dtypes(tuple(columns))
    series = {
        name: pd.Series(
            [_MAY_BE_EMPTY[name] if value is None else value for value in column], dtype=dtype
        )
        for (name, column), dtype in zip(columns.items(), dtypes.values(), strict=True)
    }
    return pd.DataFrame(series)


def named(names: Sequence[str], numbers: np.ndarray) -> np.ndarray:
    """Return the name of each number, shape=(n,), dtype=object."""
    return np.array([*names, ""], object)[numbers]


# --------------------------------------------------------------------------------------------------
# Files.


PAF = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("target", "target_length", "target_start", "target_end"),
    *("matches", "columns", "mapping_quality"),
)
MUMS = ("query", "strand", "contig", "reference_position", "query_position", "length")

#: The columns of tables without a header, by the ending of the file.
_WITHOUT_HEADER = {
    ".regions.bed": ("contig", "start", "end", "name", "mean"),
    ".bed": ("contig", "start", "end", "name", "score", "strand"),
    ".m8": (
        *("qseqid", "sseqid", "pident", "length", "mismatch", "gapopen"),
        *("qstart", "qend", "sstart", "send", "evalue", "bitscore"),
    ),
    ".idxstats": ("contig", "length", "mapped", "unmapped"),
    ".dist.txt": ("contig", "depth", "share"),
}

#: Columns of OUT.guides.tsv that count sites by mismatches and kind of bulge.
_SITES_OF_GUIDE = re.compile(r"n\d+(_dna|_rna|_both)?")

#: A line of bwarp guides: the position as name, and the guide.
_GUIDE_LINE = re.compile(rb"[^\t]+:\d+-\d+:[+-]\t[ACGT]+\n")

#: A line of samtools flagstat: two counts, what they count, and perhaps their percentages.
_FLAGSTAT_LINE = re.compile(rb"^(\d+) \+ (\d+) (.*?)(?: \((?:\S+%|N/A) : .*\))?$", re.MULTILINE)

#: A line of mosdepth for a region without a name.
_NAMELESS_REGION = re.compile(rb"^([^\t\n]+\t\d+\t\d+)(\t[^\t\n]+)$", re.MULTILINE)

#: Sections of samtools stats whose line is a single row of numbers.
_SINGLE_ROWS = ("FTC", "LTC")

_ALIGNMENTS = (".sam", ".bam", ".cram")
_TAB, _NEWLINE = 9, 10


def read_table(path: str | os.PathLike) -> pd.DataFrame:
    """Read a table or a statistics file that a program of bwarp wrote, plain or compressed.

    Names are strings, even if they look like numbers or "NA"; whole numbers are int64.

    Parameters
    ----------
    path : path
        TSV, BED, PAF or Parquet; a file in the format of MUMmer, BLAST, Cas-OFFinder or CRISPOR;
        a file of ``bwarp map --qc``; metrics of duplicates; or statistics in JSON.

    Returns
    -------
    table : DataFrame
        The columns of the file. Empty numbers are NaN, or -1 in columns of whole numbers.

    Raises
    ------
    InputError
        If the file is truncated or not written by bwarp, with the line number.
    """
    name = os.fspath(path).removesuffix(".gz")
    ending = Path(name).suffix
    if ending in _ALIGNMENTS:
        raise UsageError(f"{path}: the file contains alignments: read it with pysam.AlignmentFile")
    check_files(path)
    if ending == ".json":
        return statistics_frame(path)
    if ending == ".parquet":
        return _read_parquet(path)
    text = b"".join(read_blocks(path))
    if text and not text.endswith(b"\n"):
        raise InputError(f"{path}: the file is truncated: write it again")
    if name.endswith(".regions.bed"):
        text = _NAMELESS_REGION.sub(rb"\1\t\2", text)
    for end, columns in _WITHOUT_HEADER.items():
        if name.endswith(end):
            return _cells(path, text, _dtypes(columns))
    if ending == ".paf":
        return _paf(path, text)
    if ending == ".mums" or text.startswith(b"> "):
        return _mums(path, text)
    if _GUIDE_LINE.match(text):
        return _cells(path, text, _dtypes(("guide", "sequence")))
    if _FLAGSTAT_LINE.match(text):
        text = _FLAGSTAT_LINE.sub(rb"\3\t\1\t\2", text)
        return _cells(path, text, _dtypes(("name", "passed", "failed")))
    if text.startswith(b"# "):
        return _samtools_stats(path, text)
    first_line = 1
    if text.startswith(b"## METRICS CLASS"):
        # A histogram follows, which repeats the estimated size of the library.
        text = text.partition(b"\n\n")[0].partition(b"\n")[2] + b"\n"
        first_line = 2
    header, _, rest = text.partition(b"\n")
    names = header.decode("utf-8", "replace").split("\t")
    _refuse_unknown(path, names)
    return _cells(path, rest, _dtypes(names), first_line + 1)


def _refuse_unknown(path, names: Sequence[str]) -> None:
    for name in names:
        if name not in DTYPES and not _SITES_OF_GUIDE.fullmatch(name):
            raise InputError(
                f"{path}: not a table of bwarp (unknown column {name[:40]!r}): read other tables "
                "with pandas.read_csv"
            )


def _read_parquet(path) -> pd.DataFrame:
    if find_spec("pyarrow") is None:
        raise UsageError(f"{path}: Parquet requires pyarrow: pip install 'bwarp[parquet]'")
    with open(path, "rb") as file:
        try:
            table = pd.read_parquet(file)
        except (ValueError, OSError) as error:
            raise InputError(f"{path}: the file is damaged: write it again") from error
    _refuse_unknown(path, table.columns)
    return table.astype({name: DTYPES[name] for name in table.columns})


def _dtypes(names: Sequence[str]) -> dict[str, str]:
    found = {name: DTYPES.get(name, "int64") for name in names}
    if "pair" in found and not {"forward", "left"}.isdisjoint(names):
        # Pairs of primers have names, other pairs numbers.
        found["pair"] = "str"
    return found


def _cells(
    path,
    text: bytes,
    dtypes: dict[str, str],
    first_line: int = 1,
    empty: dict[str, float] = _MAY_BE_EMPTY,
) -> pd.DataFrame:
    """Parse tab-separated lines to columns of these types.

    Parameters
    ----------
    first_line : int
        Number of the first line in the file.
    empty : dict
        Columns whose cells may be empty, and the values of empty cells.
    """
    _check_lines(path, text, len(dtypes), first_line)
    try:
        return _parsed(text, dtypes, empty)
    except (ValueError, OverflowError):
        cells = _parsed(text, dict.fromkeys(dtypes, "str"), {})
    for name in (name for name in dtypes if dtypes[name] != "str"):
        pattern = r"-?\d{1,18}" if dtypes[name] == "int64" else r"[-+.\deE]+"
        good = cells[name].str.fullmatch(pattern)
        if name in empty:
            good |= cells[name] == ""
        for row in np.flatnonzero(~good)[:1]:
            raise InputError(
                f"{path}, line {first_line + row}: {cells[name][row]!r} in column {name} is not a "
                "number: write the table again"
            )
    raise InputError(f"{path}: a number cannot be read: write the table again")


def _parsed(text: bytes, dtypes: dict[str, str], may_be: dict[str, float]) -> pd.DataFrame:
    empty = [name for name in dtypes if name in may_be]
    table = pd.read_csv(
        io.BytesIO(text),
        sep="\t",
        header=None,
        names=list(dtypes),
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
        table[name] = table[name].fillna(may_be[name]).astype(dtypes[name])
    return table


def _check_lines(path, text: bytes, n_columns: int, first_line: int) -> None:
    """Raise an error if a line has too many or too few cells, which pandas would accept."""
    data = np.frombuffer(text, np.uint8)
    tabs = np.searchsorted(np.flatnonzero(data == _TAB), np.flatnonzero(data == _NEWLINE))
    cells = np.diff(tabs, prepend=0) + 1
    for row in np.flatnonzero(cells != n_columns)[:1]:
        raise InputError(
            f"{path}, line {first_line + row}: found {counted(cells[row], 'column')} instead of "
            f"{n_columns}: write the table again"
        )


def _paf(path, text: bytes) -> pd.DataFrame:
    """Parse PAF with one column per tag; missing tags are NaN or empty strings."""
    lines = [line.split(b"\t") for line in text.splitlines()]
    kinds: dict[bytes, bytes] = {}
    tags_of_lines: list[dict[bytes, bytes]] = []
    for number, line in enumerate(lines, 1):
        tags = {}
        for cell in line[len(PAF) :]:
            name, kind, value = [*cell.split(b":", 2), b"", b""][:3]
            if not re.fullmatch(rb"[A-Za-z][A-Za-z0-9]:[AifZHB]", name + b":" + kind):
                shown = cell.decode("utf-8", "replace")
                raise InputError(
                    f"{path}, line {number}: {shown!r} is not a tag such as NM:i:0: write the "
                    "table again"
                )
            kinds[name] = kind
            tags[name] = value
        tags_of_lines.append(tags)
    dtypes, empty = _dtypes(PAF), {}
    for name, kind in kinds.items():
        dtypes[name.decode()] = {b"i": "int64", b"f": "float64"}.get(kind, "str")
        if kind in b"if" and not all(name in tags for tags in tags_of_lines):
            dtypes[name.decode()] = "float64"
            empty[name.decode()] = np.nan
    text = b"".join(
        b"\t".join([*line[: len(PAF)], *(tags.get(name, b"") for name in kinds)]) + b"\n"
        for line, tags in zip(lines, tags_of_lines, strict=True)
    )
    return _cells(path, text, dtypes, empty=empty)


def _mums(path, text: bytes) -> pd.DataFrame:
    """Parse MUMmer's format: "> query" or "> query Reverse", then one match per line."""
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
                "reference, position in the query, length) in MUMmer's format"
            )
        rows.append((query, strand, contig, *map(int, numbers)))
    return pd.DataFrame(rows, columns=MUMS).astype(_dtypes(MUMS))


def _samtools_stats(path, text: bytes) -> pd.DataFrame:
    """Parse the sections of samtools stats, with one row per number.

    The name of a number is the first cell of its line, such as "reads mapped" or a cycle.
    """
    rows: list[tuple] = []
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if line.startswith("#"):
            continue
        section, *cells = line.partition("\t# ")[0].split("\t")
        name = "" if section in _SINGLE_ROWS else cells[0].removesuffix(":") if cells else ""
        values = cells if section in _SINGLE_ROWS else cells[1:]
        try:
            rows += [(section, name, column, float(value)) for column, value in enumerate(values)]
        except ValueError:
            raise InputError(
                f"{path}, line {number}: not a line of samtools stats: write the file again"
            ) from None
    columns = ("section", "name", "column", "value")
    return pd.DataFrame(rows, columns=columns).astype(_dtypes(columns))
