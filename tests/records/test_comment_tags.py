"""Comments of FASTQ headers become equal tags in SAM and BAM; other comments are errors."""

import gzip

import numpy as np
import pysam
import pytest

from bwarp.bam.fields import DT, RG
from bwarp.errors import InputError
from bwarp.reads.read_chunks import interleaved_chunks, paired_chunks, single_chunks
from bwarp.records.comment_tags import comment_tags

GOOD = [
    "",
    "BC:Z:ACGT",
    "BC:Z:ACGT+AC GT\tXI:i:7\tX0:A:!\tXH:H:0AFF\tXe:Z:\tXf:H:",
    "XI:i:0\tXJ:i:255\tXK:i:256\tXL:i:65535\tXM:i:65536\tXN:i:4294967295",
    "XI:i:-1\tXJ:i:-128\tXK:i:-129\tXL:i:-32768\tXM:i:-32769\tXN:i:-2147483648",
    "RG:Z:mine",
    "nm:i:3\tXZ:Z:~ !",
]
RARE = [
    "XF:f:3e10\tBC:Z:A",
    "XF:f:-0.1\tXG:f:.5\tXH:f:0.1234567890123456789\tXI:f:7\tXJ:f:+1.5\tXK:f:-0",
    "XB:B:c,-128,127\tXC:B:S,0,65535\tXD:B:f,0.1,-2e3\tXE:B:I,4294967295\tXG:B:C",
]
BAD = [
    "1:N:0:ACGT", "BC:Z", "BC:Z:A\t", "\tBC:Z:A", "BC:Z:A\t\tXX:i:1", "BC:z:A", "B:Z:ACG", "1C:Z:A",
    "B_:Z:A", "BC-Z:A", "BC:Z-A", "BC:Z:\x7f", "XI:i:", "XI:i:-", "XI:i:1.5", "XI:i:4294967296",
    "XI:i:-2147483649", "XI:i:00000000001", "XY:A:ab", "XB:A:", "XB:A: ", "XH:H:0", "XH:H:0a",
    "XF:f:", "XF:f:x", "XB:B:c,128", "XB:B:x,1", "XB:B:c,1.5", "XB:B:c1", "XB:B:",
]  # fmt: skip
OURS = ["NM:i:3", "BC:Z:A\tMD:Z:5", "XA:Z:x\tBC:Z:A", "ms:i:4", "AS:f:1", "XS:B:c,1"]


def fastq(comments) -> str:
    return "".join(f"@r{i} {text}\nACGT\n+\nIIII\n" for i, text in enumerate(comments))


def chunk_of(comments, folder):
    (folder / "in.fq").write_text(fastq(comments))
    (chunk,) = single_chunks(folder / "in.fq")
    return chunk


def by_samtools(texts: list[str], folder) -> list[bytes]:
    """Return the tags in BAM records that samtools makes from lines with these tags."""
    lines = [f"r\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\t{text}".rstrip("\t") + "\n" for text in texts]
    (folder / "in.sam").write_text("@HD\tVN:1.6\n" + "".join(lines))
    pysam.view("-b", "--no-PG", "-o", f"{folder}/o.bam", f"{folder}/in.sam", catch_stdout=False)
    data = gzip.decompress((folder / "o.bam").read_bytes())
    at, tags = 12 + int.from_bytes(data[4:8], "little"), []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        tags.append(data[at + 4 + 34 : at + 4 + size])
        at += 4 + size
    return tags


NUMBERS = [
    "XF:f:-0.1\tXG:f:.5\tXI:f:7\tXJ:f:+1.5\tXK:f:-0\tXL:f:123456789.012345",
    "XB:B:c,-128,127\tXC:B:S,0,65535\tXD:B:f,0.1,-2.5\tXE:B:I,4294967295\tXG:B:C\tXH:B:s,-1",
    "XB:B:i,-2147483648,+2147483647\tXC:B:C,255,0,1",
]


@pytest.mark.parametrize("comments", [GOOD, GOOD + NUMBERS, GOOD + NUMBERS + RARE])
def test_tags_are_those_of_samtools(comments, tmp_path):
    tags = comment_tags(chunk_of(comments, tmp_path))
    found, binary = (
        [data[slice(*offsets[i : i + 2])].tobytes() for i in range(len(comments))]
        for data, offsets in tags
    )
    assert [comment.decode() for comment in found] == comments
    assert binary == by_samtools(comments, tmp_path)


@pytest.mark.parametrize("rare", [[], RARE[:1]])
def test_refusals(rare, tmp_path):
    for comment in BAD:
        with pytest.raises(InputError) as error:
            comment_tags(chunk_of([*rare, "BC:Z:A", comment, "x"], tmp_path))
        assert str(error.value) == (
            f"read 'r{1 + len(rare)}': its comment {comment!r} does not consist of SAM tags such "
            "as BC:Z:ACGT, separated by tabs: omit --comments"
        )
    of_runs = [("RG:Z:x", (RG,)), ("DT:Z:LB", (RG, DT))]
    for comment, more in [*((comment, ()) for comment in OURS), *of_runs]:
        with pytest.raises(InputError) as error:
            comment_tags(chunk_of([*rare, "BC:Z:A", comment], tmp_path), more)
        assert str(error.value) == (
            f"read 'r{1 + len(rare)}': its comment {comment!r} has a tag that bwarp writes: omit "
            "--comments, or remove the tag from the FASTQ"
        )


def test_comments_of_both_ends(tmp_path):
    (tmp_path / "1.fq").write_text("@a/1 XI:i:1\nA\n+\nI\n@b\nA\n+\nI\n")
    (tmp_path / "2.fq").write_text("@a/2\tXI:i:2\tBC:Z:C\nA\n+\nI\n@b BC:Z:G\nA\n+\nI\n")
    (pairs,) = paired_chunks(tmp_path / "1.fq", tmp_path / "2.fq")
    tags = comment_tags(pairs)
    assert tags.text[0].tobytes() == b"XI:i:1XI:i:2\tBC:Z:CBC:Z:G"
    assert tags.text[1].tolist() == [0, 6, 19, 19, 25]
    lines = [(tmp_path / f"{end}.fq").read_text().splitlines(keepends=True) for end in (1, 2)]
    (tmp_path / "both.fq").write_text(
        "".join("".join(some[i : i + 4]) for i in (0, 4) for some in lines)
    )
    (pairs,) = interleaved_chunks(tmp_path / "both.fq")
    again = comment_tags(pairs)
    assert again.binary[0].tobytes() == tags.binary[0].tobytes() == b"XIC\1XIC\2BCZC\0BCZG\0"
    assert np.array_equal(again.text[1], tags.text[1])


def test_usual_numbers_are_converted_by_compiled_code(tmp_path, monkeypatch):
    monkeypatch.setattr("bwarp.records.comment_tags._slowly", None)
    rng = np.random.default_rng(5)
    comments = [
        f"XF:f:{rng.normal() * 10.0 ** rng.integers(-3, 6):.{rng.integers(0, 8)}f}\tXB:B:f,"
        + ",".join(f"{number:.4f}" for number in rng.normal(size=3))
        for _ in range(300)
    ]
    tags = comment_tags(chunk_of([*NUMBERS, *comments], tmp_path))
    data, offsets = tags.binary
    found = [data[slice(*offsets[i : i + 2])].tobytes() for i in range(offsets.size - 1)]
    assert found == by_samtools([*NUMBERS, *comments], tmp_path)
