"""Reads of both simulators count as correct, incorrect, random or unmapped."""

from bwarp.evaluation.agreement import count_correct

LINES = [
    ("0:chr1:100:200:+:0:0", 0, "chr1", 101, 60, "100M"),
    ("1:chr1:100:200:+:0:0", 0, "chr1", 121, 30, "100M"),
    ("2:chr1:100:200:+:0:0", 0, "chr1", 122, 20, "100M"),
    ("3:chr1:100:200:+:0:0", 0, "chr1", 141, 50, "30S70M"),
    ("4:chr1:100:200:+:0:0", 0, "chr2", 101, 3, "100M"),
    ("5:chr1:100:200:+:0:0", 4, "*", 0, 0, "*"),
    ("6:*", 0, "chr1", 5, 7, "100M"),
    ("7:*", 4, "*", 0, 0, "*"),
    ("8:chr1:100:200:+:0:0:400:500:-:0:0", 0x91, "chr1", 401, 59, "100M"),
    ("8:chr1:100:200:+:0:0:400:500:-:0:0", 0x841, "chr2", 1, 60, "100M"),
    ("chr_1_101_401_0_1_0_0_0:0:0_0:0:0_1f", 0x41, "chr_1", 101, 58, "100M"),
    ("chr_1_101_401_0_1_0_0_0:0:0_0:0:0_1f", 0x81, "chr_1", 501, 57, "100M"),
    ("rand_0_0_0_0_1_1_0:0:0_0:0:0_0", 0x41, "chr1", 101, 0, "100M"),
]


def test_every_kind_of_read(tmp_path):
    path = tmp_path / "reads.sam"
    header = "".join(f"@SQ\tSN:{name}\tLN:1000\n" for name in ("chr1", "chr2", "chr_1"))
    lines = "".join(
        f"{name}\t{flag}\t{contig}\t{start}\t{quality}\t{cigar}\t*\t0\t0\t{'A' * 100}\t*\n"
        for name, flag, contig, start, quality, cigar in LINES
    )
    path.write_text(header + lines)
    counts = count_correct(str(path))
    by_quality = {
        kind: [q for q, n in enumerate(getattr(counts, kind)) for _ in range(n)]
        for kind in ("correct", "incorrect", "random")
    }
    assert by_quality == {
        "correct": [30, 50, 58, 59, 60],
        "incorrect": [3, 20, 57],
        "random": [0, 7],
    }
    assert (counts.unmapped, counts.unmapped_random, counts.total) == (1, 1, 9)
