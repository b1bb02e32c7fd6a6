"""What mapped reads keep of the files without alignments that they are from: tags, read group."""

from dataclasses import replace

from bwarp.errors import UsageError
from bwarp.mapping.output.output_options import AlignmentOutput, parse_read_group
from bwarp.mapping.reads.unaligned_records import read_groups

__all__ = ["with_tags_of"]


def with_tags_of(paths: list[str], output: AlignmentOutput) -> AlignmentOutput:
    """The same output with the tags of the reads, and their read group if none was typed.

    Raises
    ------
    UsageError
        If the reads are of several groups.
    """
    output = replace(output, comments=True)
    groups = list(dict.fromkeys(line for path in paths for line in read_groups(path)))
    if output.read_group or output.path.endswith((".paf", ".paf.gz")) or not groups:
        return output
    if len(groups) > 1:
        raise UsageError(
            f"{', '.join(paths)}: holds {len(groups):,} read groups: map each by itself "
            "(samtools split), or give one for all of its reads (--read-group)"
        )
    line, group = parse_read_group(groups[0])
    return replace(output, read_group=line, read_group_id=group)
