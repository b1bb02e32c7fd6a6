"""Comparison of the files of --qc with what samtools writes about the same file."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pysam

#: Sections of samtools stats that bwarp does not write: checksums, and depth by GC content.
_LEFT_OUT = ("CHK", "GCD")


def check_texts_of_samtools(
    path: Path, texts: Mapping[str, str], has_long_reads: bool = False
) -> None:
    """Compare texts, by the endings of their files, with those of samtools for a BAM file.

    samtools loses depths when it meets the first read of 300 bases or more, and longer ones after
    it, so COV is then compared with the depths of all bases.
    """
    assert texts["flagstat"] == pysam.flagstat(str(path))
    assert texts["idxstats"] == pysam.idxstats(str(path))
    found, expected = _sections(texts["stats"]), _sections(pysam.stats(str(path)))
    for name in _LEFT_OUT:
        expected.pop(name, None)
    assert list(found) == list(expected)
    if has_long_reads:
        expected["COV"][1:] = _coverage(path)
    for name in expected:
        assert found[name] == expected[name], name


def _coverage(path: Path) -> list[str]:
    depths: Counter = Counter()
    with pysam.AlignmentFile(str(path)) as file:
        for record in file:
            if not record.is_unmapped and not record.is_secondary and record.query_length:
                for start, stop in record.get_blocks():
                    depths.update((record.reference_id, at) for at in range(start, stop))
    rows = sorted(Counter(depths.values()).items())
    return [f"COV\t[{depth}-{depth}]\t{depth}\t{count}" for depth, count in rows]


def _sections(text: str) -> dict[str, list[str]]:
    """Return the lines of each section with the comments before it."""
    sections: dict[str, list[str]] = {}
    comments: list[str] = []
    # The first lines name the program and its version.
    for line in text[
        text.index("# CHK") if "# CHK" in text else text.index("# Summ") :
    ].splitlines():
        if line.startswith("#"):
            comments.append(line)
            continue
        name = line.split("\t")[0]
        if name not in sections:
            sections[name] = comments
            comments = []
        sections[name].append(line)
    return sections
