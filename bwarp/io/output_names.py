"""Names of outputs, checked before any work: none may overwrite an input or another output."""

import os
from collections.abc import Iterable
from pathlib import Path

from bwarp.errors import UsageError
from bwarp.io.atomic_output import check_writable, is_standard_output, real_path, refuse_folder

__all__ = ["TABLE_FORMATS", "check_outputs", "table_format"]

TABLE_FORMATS = ("tsv", "bed", "parquet")


def table_format(path: str | os.PathLike) -> str:
    """``"tsv"``, ``"bed"`` or ``"parquet"``, by a file's ending; ``-``, standard output, is TSV.

    Raises
    ------
    UsageError
        For an ending that says none of these.
    """
    if str(path) == "-":
        return "tsv"
    name = Path(path).name
    ending = Path(name.removesuffix(".gz")).suffix[1:]
    if ending not in TABLE_FORMATS or name.endswith(".parquet.gz"):
        raise UsageError(
            f"{path}: the ending says no format: use .tsv, .bed, .tsv.gz, .bed.gz or .parquet"
        )
    return ending


def check_outputs(
    outputs: Iterable[str | os.PathLike | None],
    inputs: Iterable[str | os.PathLike | None],
    folder: str | os.PathLike | None = None,
) -> None:
    """Refuse an output that cannot be written, or would overwrite an input or another output.

    So would one that has the name of another, lies in one, or holds one. In a folder that is an
    input a new file may be written, but none that is there.

    Parameters
    ----------
    outputs : iterable of path or None
        All files that are written, those as well that nobody named, such as the index of a BAM
        file; None for one that is not written. Devices and pipes may be named again.
    inputs : iterable of path or None
    folder : path, optional
        An output that is a folder.
    """
    inputs = {_resolved(file): file for file in inputs if file and str(file) != "-"}
    taken = dict(inputs)
    for file in filter(None, [*outputs, folder]):
        path = _resolved(file)
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            continue
        if path in taken:
            raise UsageError(
                f"{file} is taken by another file of this run: every file needs a name of its own"
            )
        for other_path, other in taken.items():
            if _holds(other_path, path) and (other_path not in inputs or os.path.exists(path)):
                raise UsageError(f"{file} lies in {other}, which this run needs: write elsewhere")
            if _holds(path, other_path):
                raise UsageError(f"{file} holds {other}, which this run needs: write elsewhere")
        taken[path] = file
        if path != "-":
            if file != folder:
                refuse_folder(file)
            check_writable(real_path(file))


def _resolved(file: str | os.PathLike) -> str:
    return "-" if is_standard_output(file) else os.path.realpath(file)


def _holds(folder: str, path: str) -> bool:
    return Path(folder) in Path(path).parents
