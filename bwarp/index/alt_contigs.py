"""ALT contigs: alternate copies of parts of the other contigs, such as haplotypes of HLA genes.

A contig is not recognised as ALT by its name: the first column of a list names the ALT contigs. The
list may be SAM, as in bwa.kit.
"""

import os
from pathlib import Path

from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import read_blocks
from bwarp.reference import Reference


def listed_alt_contigs(path: str | os.PathLike, reference: Reference) -> tuple[int, ...]:
    """Return the numbers of the contigs that a list names, ignoring names not in the reference.

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
            f"{path}: no name in its first column is a contig of the reference: correct the list "
            "of ALT contigs, or remove it"
        )
    return found


def chosen_alt_contigs(typed: str | None, reference: Reference) -> tuple[int, ...]:
    """Return the numbers of the ALT contigs: those of the reference, or those given instead.

    Parameters
    ----------
    typed : str or None
        A file as in `listed_alt_contigs`, comma-separated names, or none.

    Raises
    ------
    UsageError, InputError
        If a name is neither a file nor a contig, or a file names no contig.
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
                f"--alt {name}: no such contig or file: give contigs of the index separated by "
                "commas, a file with one contig per line, or none"
            )
    return tuple(sorted({numbers[name] for name in names}))


def named_like_alt(names: tuple[str, ...]) -> list[str]:
    """Return the names that look like ALT contigs of GRCh38 or bwa.kit."""
    return [name for name in names if name.endswith("_alt") or name.startswith("HLA-")]


# The list of ALT contigs next to a reference, named as in bwa: genome.fa.alt.
#
# The workflow uses this too, so this module imports nothing that is slow to load.


#: Extensions of compressed references; the name of the list may lack them.
_COMPRESSED = (".gz", ".bgz", ".bz2", ".xz", ".zst")


def alt_list_beside(path: str | os.PathLike) -> Path | None:
    """Return the list of ALT contigs next to a reference, if there is one."""
    path = Path(path)
    names = [path.name, path.stem] if path.suffix in _COMPRESSED else [path.name]
    lists = [path.with_name(f"{name}.alt") for name in names]
    return next((file for file in lists if file.is_file()), None)
