"""ALT contigs: alternate copies of parts of the other contigs, such as haplotypes of HLA genes.

No contig is known as ALT by its name alone: the first column of a list says which are. The list may
be SAM, as that of bwa.kit.
"""

import os
from pathlib import Path

from bwarp.errors import InputError, UsageError
from bwarp.io.file_blocks import read_blocks
from bwarp.reference import Reference


def listed_alt_contigs(path: str | os.PathLike, reference: Reference) -> tuple[int, ...]:
    """Numbers of the contigs that a list names; names that the reference lacks are passed over.

    Raises
    ------
    InputError
        If it names no contig of the reference.
    """
    lines = b"".join(read_blocks(path)).decode("utf-8", "replace").splitlines()
    names = {line.split(maxsplit=1)[0] for line in lines if line.strip() and line[0] != "@"}
    found = tuple(i for i, name in enumerate(reference.names) if name in names)
    if not found:
        raise InputError(
            f"{path}: no name in its first column is a contig of the reference: mend "
            "the list of ALT contigs, or take it away"
        )
    return found


def chosen_alt_contigs(typed: str | None, reference: Reference) -> tuple[int, ...]:
    """Numbers of the ALT contigs: those of the reference, or those typed instead.

    Parameters
    ----------
    typed : str or None
        A file as of `listed_alt_contigs`, names with commas between them, or none.

    Raises
    ------
    UsageError, InputError
        For a name that is neither a file nor a contig, and a file that names no contig.
    """
    if typed is None:
        return reference.alt
    if typed == "none":
        return ()
    if os.path.isfile(typed):
        return listed_alt_contigs(typed, reference)
    numbers = {name: i for i, name in enumerate(reference.names)}
    names = typed.split(",")
    for name in names:
        if name not in numbers:
            raise UsageError(
                f"--alt {name}: there is no such contig or file: give contigs of the index with "
                "commas between them, a file with one in each line, or none"
            )
    return tuple(sorted({numbers[name] for name in names}))


def named_like_alt(names: tuple[str, ...]) -> list[str]:
    """Those names that ALT contigs of GRCh38 and of bwa.kit have."""
    return [name for name in names if name.endswith("_alt") or name.startswith("HLA-")]


# --------------------------------------------------------------------------------------------------
# The list of ALT contigs beside a reference, as bwa has it: genome.fa.alt.
#
# The workflow asks for it, too: nothing is imported here that takes long.


#: Endings of compressed references; the list may be named without.
_COMPRESSED = (".gz", ".bgz", ".bz2", ".xz", ".zst")


def alt_list_beside(path: str | os.PathLike) -> Path | None:
    """The list of ALT contigs beside a reference, if there is one."""
    path = Path(path)
    names = [path.name, path.stem] if path.suffix in _COMPRESSED else [path.name]
    lists = [path.with_name(f"{name}.alt") for name in names]
    return next((file for file in lists if file.is_file()), None)
