"""What mapped reads keep of the files without alignments that they are from: tags, read groups."""

import os
from dataclasses import replace

from bwarp.errors import InputError, UsageError
from bwarp.mapping.output.output_options import AlignmentOutput, parse_read_group
from bwarp.mapping.reads.read_files import ReadFiles
from bwarp.mapping.reads.record_files import holds_records, read_groups
from bwarp.mapping.reads.stored_reads import read_groups_in

__all__ = ["with_tags_of", "with_tags_of_batches"]


def with_tags_of(files: ReadFiles, output: AlignmentOutput) -> tuple[ReadFiles, AlignmentOutput]:
    """The same with the tags of the reads, and their read groups if none was typed.

    Where there is one group, all reads are of it; of several, each read names its own.

    Raises
    ------
    InputError
        If two groups have the same ID.
    """
    output = replace(output, comments=True)
    if _has_group_or_none(output):
        return files, output
    lines: dict[bytes, str] = {}
    for path in filter(holds_records, files.first):
        for typed in read_groups(path):
            line, group = parse_read_group(typed)
            if lines.setdefault(group, line) != line:
                raise InputError(
                    f"{path}: its read group {group.decode()!r} has another header line before: "
                    "give it another ID (samtools addreplacerg), or one group for all reads "
                    "(--read-group)"
                )
    several = len(lines) > 1
    group = b"" if several else next(iter(lines), b"")
    header = "\n".join(lines.values()) or None
    return (
        replace(files, with_groups=several),
        replace(output, read_group=header, read_group_id=group),
    )


def with_tags_of_batches(folder: str | os.PathLike, output: AlignmentOutput) -> AlignmentOutput:
    """The same of a folder of batches, whose reads do not name their groups.

    Raises
    ------
    UsageError
        If the reads are of several groups, and none was typed.
    """
    output = replace(output, comments=True)
    if _has_group_or_none(output):
        return output
    lines = read_groups_in(folder)
    if len(lines) > 1:
        raise UsageError(
            f"{folder}: its reads are of {len(lines):,} read groups, which batches do not keep: "
            "map their files, or give one group for all reads (--read-group)"
        )
    line, group = parse_read_group(lines[0] if lines else None)
    return replace(output, read_group=line, read_group_id=group)


def _has_group_or_none(output: AlignmentOutput) -> bool:
    """Whether a group was typed, or the form of the output has none."""
    return bool(output.read_group) or output.path.endswith((".paf", ".paf.gz"))
