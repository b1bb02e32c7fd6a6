"""Every kind of difference between two alignments of a read, and scores from CIGARs."""

from dataclasses import replace

import numpy as np
import pytest

from bwarp.evaluation.agreement import Alignment, kind_of, primary_alignments, score_of
from bwarp.mapping.parameters import MappingParameters
from bwarp.sequence import encode

PARAMETERS = MappingParameters()
CONTIGS = {"a": np.zeros(1000, np.uint8), "b": np.zeros(1000, np.uint8)}
HERE = Alignment("a", 100, False, ((0, 50),), 60, 40)


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"quality": 0}, "same"),
        ({"cigar": ((4, 5), (0, 45)), "position": 105}, "same locus, equal score"),
        ({"cigar": ((4, 5), (0, 45)), "position": 105, "score": 39}, "same locus, here better"),
        ({"cigar": ((0, 20), (2, 3), (0, 30)), "score": 41}, "same locus, there better"),
        # The alignments overlap, but no base has the same position.
        ({"position": 101}, "elsewhere, equal score"),
        ({"reverse": True}, "elsewhere, equal score"),
        ({"contig": "b", "score": 50}, "elsewhere, there better"),
        ({"position": 500, "score": 30}, "elsewhere, here better"),
        ({"contig": "c"}, "there on a contig not known here"),
        ({"contig": ""}, "mapped here only"),
    ],
)
def test_kinds(changes, kind):
    assert kind_of(HERE, replace(HERE, **changes), CONTIGS) == kind


def test_kinds_of_unmapped_reads():
    unmapped = Alignment("", -1, False, (), 0, 0)
    assert kind_of(unmapped, HERE, CONTIGS) == "mapped there only"
    assert kind_of(unmapped, unmapped, CONTIGS) == "unmapped"


def test_scores():
    contig = encode(b"ACGTACGTAAGGCCTTN")
    read = encode(b"TTACGTACGTNN")
    assert score_of(((4, 2), (0, 8), (4, 2)), read, contig, 0, PARAMETERS) == 8 - 10
    assert score_of(((0, 2), (1, 2), (0, 4), (4, 4)), read, contig, 3, PARAMETERS) == (
        (1 - 4) - 8 - 16 - 5
    )
    read = encode(b"AAGGTTN")
    assert score_of(((0, 4), (2, 2), (0, 3)), read, contig, 8, PARAMETERS) == 6 - 8 - 4
    assert score_of(((0, 4), (5, 3)), read, contig, 8, PARAMETERS) == 4 - 5


def test_primary_lines_of_a_file(tmp_path):
    lines = [
        ("r", 0x41, "a", 11, 60, "4=1X5=", "CCCCCCCCCC"),
        ("r", 0x81, "*", 0, 0, "*", "CCCCCCCCCC"),
        ("r", 0x841, "b", 11, 60, "6H4M", "CCCC"),
        ("r", 0x141, "b", 11, 60, "10M", "*"),
        ("s", 0x10, "z", 11, 7, "10M", "CCCCCCCCCC"),
    ]
    header = "".join(f"@SQ\tSN:{name}\tLN:1000\n" for name in "abz")
    path = tmp_path / "x.sam"
    path.write_text(
        header
        + "".join(
            f"{name}\t{flag}\t{contig}\t{start}\t{quality}\t{cigar}\t*\t0\t0\t{bases}\t*\n"
            for name, flag, contig, start, quality, cigar, bases in lines
        )
    )
    contigs = {"a": np.ones(1000, np.uint8)}
    assert list(primary_alignments(str(path), contigs, PARAMETERS)) == [
        (("r", 0), Alignment("a", 10, False, ((0, 10),), 60, 10)),
        (("r", 1), Alignment("", -1, False, (), 0, 0)),
        (("s", 0), Alignment("z", 10, True, ((0, 10),), 7, 0)),
    ]
