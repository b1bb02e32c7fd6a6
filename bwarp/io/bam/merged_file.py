"""Sorted BAM files merged to one."""

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bwarp.io.bam.bgzf import read_bgzf
from bwarp.io.bam.header import BamHeader, merged_header, split_header
from bwarp.io.bam.merging import merged, whole_records
from bwarp.io.bam.sorted_file_and_duplicates import sorted_file
from bwarp.runtime.threads import read_ahead

__all__ = ["merge_files"]


def merge_files(
    paths: Sequence[str | os.PathLike],
    made: Path,
    threads: int,
    output: str,
    open_file: Callable = sorted_file,
    change_header: Callable[[BamHeader], BamHeader] = lambda header: header,
) -> None:
    """Merge sorted BAM files to `made`, which will become `output`.

    Among records at one position those of earlier files come first.

    Parameters
    ----------
    open_file : function
        `sorted_file`, or what else makes a file of sorted records.
    change_header : function
        Of the header of all files, that which is written.
    """
    with ExitStack() as files:
        headers, runs = [], []
        for path in paths:
            file = files.enter_context(open(path, "rb"))
            header, blocks = split_header(path, read_bgzf(file, path, 1 + threads // len(paths)))
            headers.append(header)
            runs.append(read_ahead(whole_records(path, blocks, header.contig_starts)))
        header = change_header(merged_header(list(paths), headers))
        with open_file(made, header, threads, output) as writer:
            for records, order in read_ahead(merged(runs, threads)):
                writer.write(records.data, records.starts, order)
