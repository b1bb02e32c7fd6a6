"""The @PG record of SAM and BAM: which program wrote the file, and how it was called."""

from collections.abc import Mapping

from bwarp import __version__

__all__ = ["program_record"]


def program_record(command: str, options: Mapping[str, object]) -> str:
    """The record, with the command line (CL) reduced to what decides the records.

    Names of files, threads, the engine and the read group (@RG has it) are not among `options`:
    the same work has the same bytes wherever and however it is done.

    Parameters
    ----------
    command : str
        A subcommand of bwarp.
    options : mapping
        Values by the names of long options. True stands for a flag; False and None are left out.
    """
    words = ["bwarp", command]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [f"--{name}", str(value)]
    return f"@PG\tID:bwarp\tPN:bwarp\tVN:{__version__}\tCL:{' '.join(words)}"
