"""The @PG record of SAM and BAM: which program wrote the file, and how it was called."""

import shlex
from collections.abc import Mapping

from bwarp import __version__

__all__ = ["files_of_reads", "program_record"]


def files_of_reads(paired: bool) -> dict[str, str]:
    """Placeholders for the index, the reads and the output."""
    reads = {"-1": "R1.fq", "-2": "R2.fq"} if paired else {"-1": "READS.fq"}
    return {"--index": "INDEX", **reads, "-o": "OUT.bam"}


def program_record(command: str, files: Mapping[str, str], options: Mapping[str, object]) -> str:
    """The record, with a command line (CL) of what decides the records, to fill in files and run.

    Files have placeholders in it, and threads, the engine and the read group (@RG has it) are
    not among `options`: the same work has the same bytes wherever and however it is done.

    Parameters
    ----------
    command : str
        A subcommand of bwarp.
    files : mapping
        Placeholders, as --help has them, by options.
    options : mapping
        Values by the names of long options. True stands for a flag; False and None are left out.
    """
    words = ["bwarp", command, *(word for option in files.items() for word in option)]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [f"--{name}", str(value)]
    return f"@PG\tID:bwarp\tPN:bwarp\tVN:{__version__}\tCL:{shlex.join(words)}"
