"""bwarp map: secondary records, soft clips, = and X, PAF, regions and tags of comments.

The output of bwa mem and minimap2 for the same reads is in golden/.
"""

import gzip
import re
from collections import Counter
from pathlib import Path

import pysam
import pytest

from tests.helpers.programs.mapped_reads import SCRIPT, records

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def golden_index(run_program, tmp_path_factory):
    index = tmp_path_factory.mktemp("golden") / "index"
    done = run_program("index_reference.py", GOLDEN / "genome.fa", "-o", index, "--backend", "cpu")
    assert done.rc == 0, done.stderr
    return index


@pytest.fixture
def lines_of(run_program, golden_index, tmp_path):
    def run(*options, output="out.sam", reads=("-1", GOLDEN / "reads.fq")) -> list[list[str]]:
        done = run_program(
            SCRIPT, "--index", golden_index, *reads, "-o", tmp_path / output, *options,
            "--backend", "cpu",
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        return fields_of(tmp_path / output)

    return run


def fields_of(path) -> list[list[str]]:
    lines = Path(path).read_text().splitlines()
    return [line.split("\t") for line in lines if line[0] != "@"]


def same_in_sam(line: list[str], *tags: str) -> tuple:
    """Return the fields that must be equal: without the quality, and with only common tags."""
    have = dict(tag.split(":", 1) for tag in line[11:])
    # Qualities of other records are not compared.
    have["SA"] = re.sub(r",\d+(,\d+;)", r"\1", have.get("SA", ""))
    return *line[:4], *line[5:11], *(have.get(tag) for tag in tags)


def test_secondary_records_are_those_of_bwa_mem(lines_of):
    found, expected = lines_of("-a"), fields_of(GOLDEN / "bwa_mem_a.sam")
    assert all(line[4] == "0" for line in found if int(line[1]) & 256)
    assert all("XS:i" not in " ".join(line) for line in found if int(line[1]) & 256)
    tags = ("NM", "MD", "SA", "XA")
    ours, theirs = ({same_in_sam(line, *tags) for line in lines} for lines in (found, expected))
    assert theirs <= ours
    # A copy with three mismatches in 80 bases, which bwa mem does not find.
    assert [line[:6] for line in sorted(ours - theirs)] == [
        ("split_in_copies", "272", "three", "421", "80M90H", "*")
    ]
    # bwa subtracts 1 from the score for an N; bwarp subtracts 4, as for any mismatch.
    ours, theirs = (
        {(*line[:4], tag) for line in lines for tag in line if tag[:2] == "AS" and line[0] != "n"}
        for lines in (found, expected)
    )
    assert theirs - ours == {("random", "4", "*", "0", "AS:i:0")}
    assert lines_of("--all") == found


def test_the_most_secondary_records(lines_of):
    whole = lines_of("--all")
    secondary = Counter(line[0] for line in whole if int(line[1]) & 256)
    assert secondary["split_in_copies"] == 2
    found = lines_of("--all", "--max-secondary", 1)
    assert Counter(line[0] for line in found if int(line[1]) & 256) == Counter(
        dict.fromkeys(secondary, 1)
    )
    kept = [line for line in whole if line in found]
    assert kept == found
    # The best comes first.
    assert [line[2] for line in found if line[0] == "split_in_copies"] == ["one", "one", "two"]


def test_soft_clips_are_those_of_bwa_mem(lines_of):
    found = [same_in_sam(line, "NM", "MD", "SA") for line in lines_of("-Y")]
    assert found == [
        same_in_sam(line, "NM", "MD", "SA") for line in fields_of(GOLDEN / "bwa_mem_Y.sam")
    ]
    assert any(int(line[1]) & 2048 and "S" in line[4] for line in found)


def test_matches_and_mismatches_are_those_of_minimap2(lines_of):
    found = lines_of("--eqx")
    expected = fields_of(GOLDEN / "minimap2_eqx.sam")
    assert [same_in_sam(line, "NM") for line in found] == [
        same_in_sam(line, "NM") for line in expected
    ]
    named = [tag for line in found for tag in line[11:] if tag[:2] in ("SA", "XA")]
    assert len(named) > 5
    assert not any(re.search(r"\dM", tag) for tag in named)
    plain = lines_of()
    for line, other in zip(found, plain, strict=True):
        assert [t for t in line if t[:2] not in ("SA", "XA")][6:] == [
            t for t in other if t[:2] not in ("SA", "XA")
        ][6:]


def same_in_paf(line: list[str], scale: int) -> tuple:
    tags = dict(tag.split(":", 1) for tag in line[12:])
    score = int(tags["AS"].removeprefix("i:")) / scale
    share = tags["de"]
    return *line[:11], tags["NM"], tags["nn"] != "i:0" or score, tags["tp"], share, tags["cg"]


def test_paf_is_that_of_minimap2(lines_of):
    found, expected = lines_of(output="out.paf"), fields_of(GOLDEN / "minimap2_c.paf")
    assert all(len(line) == 18 for line in found)
    # A match scores two in minimap2.
    assert [same_in_paf(line, 1) for line in found] == [same_in_paf(line, 2) for line in expected]
    pairs = ("-1", GOLDEN / "pairs.1.fq", "-2", GOLDEN / "pairs.2.fq")
    found = lines_of("-I", "320,30", output="out.paf", reads=pairs)
    expected = fields_of(GOLDEN / "minimap2_c_pairs.paf")
    assert [same_in_paf(line, 1) for line in found] == [same_in_paf(line, 2) for line in expected]


def test_paf_has_the_lines_of_the_sam(map_reads, folder, tmp_path):
    pairs = ("-1", folder / "1.fq", "-2", folder / "2.fq", "--all", "--eqx")
    for name in ("out.sam", "out.paf", "more.paf.gz"):
        threads = 1 if name == "out.paf" else 2
        assert map_reads(*pairs, "-o", tmp_path / name, "--threads", threads).rc == 0
    text = (tmp_path / "out.paf").read_bytes()
    assert gzip.decompress((tmp_path / "more.paf.gz").read_bytes()) == text
    mapped = [record for record in records(tmp_path / "out.sam") if not record.is_unmapped]
    lines = fields_of(tmp_path / "out.paf")
    assert len(lines) == len(mapped) > 3000
    for line, record in zip(lines, mapped, strict=True):
        tags = dict(tag.split(":", 1) for tag in line[12:])
        cigar = re.sub(r"\d+[SH]", "", record.cigarstring)
        assert (line[0], line[4], line[5]) == (
            record.query_name, "-" if record.is_reverse else "+", record.reference_name,
        )  # fmt: skip
        assert list(map(int, line[7:9])) == [record.reference_start, record.reference_end]
        assert (tags["cg"], tags["tp"]) == (f"Z:{cigar}", f"A:{'PS'[record.is_secondary]}")
        assert (tags["NM"], tags["AS"], line[11]) == (
            f"i:{record.get_tag('NM')}", f"i:{record.get_tag('AS')}", str(record.mapping_quality),
        )  # fmt: skip
        counts = record.get_cigar_stats()[0]
        assert int(line[9]) == counts[7]
        assert int(line[10]) + int(tags["nn"][2:]) == counts[1] + counts[2] + counts[7] + counts[8]


def test_secondary_records_of_pairs(map_reads, folder, pairs_sam, tmp_path):
    pairs = ("-1", folder / "1.fq", "-2", folder / "2.fq", "--read-group", r"@RG\tID:g1\tSM:s")
    for name, threads in (("all.sam", 1), ("more.sam", 3), ("all.bam", 2)):
        done = map_reads(*pairs, "-a", "-o", tmp_path / name, "--threads", threads)
        assert done.rc == 0, done.stderr
    assert (tmp_path / "all.sam").read_bytes() == (tmp_path / "more.sam").read_bytes()
    found = records(tmp_path / "all.sam")
    assert [r.to_string() for r in found] == [r.to_string() for r in records(tmp_path / "all.bam")]
    # The other records are the same as without the option.
    without_xa = [re.sub(r"\tXA:Z:\S+", "", r.to_string()) for r in records(pairs_sam[0])]
    assert [r.to_string() for r in found if not r.is_secondary] == without_xa
    primary = {(r.query_name, r.is_read2): r for r in found if not r.is_secondary}
    seen = {(r.query_name, r.is_read2, r.reference_id, r.reference_start) for r in found
            if not r.is_unmapped}  # fmt: skip
    secondary = [record for record in found if record.is_secondary]
    assert len(secondary) > 300
    assert len(seen) == sum(not record.is_unmapped for record in found)
    for record in secondary:
        first = primary[record.query_name, record.is_read2]
        mate = primary[record.query_name, not record.is_read2]
        assert (record.query_sequence, record.query_qualities) == (None, None)
        assert record.mapping_quality == 0
        # The bonus for two unclipped ends is 10.
        assert record.get_tag("AS") >= max(30, first.get_tag("AS") / 2) - 10
        assert not record.has_tag("XS")
        assert not record.has_tag("SA")
        assert record.infer_read_length() == first.query_length
        assert (record.next_reference_id, record.next_reference_start) == (
            mate.reference_id, mate.reference_start,
        )  # fmt: skip
        assert record.get_tag("MC") == mate.cigarstring
        assert record.get_tag("RG") == "g1"


def test_regions_keep_whole_pairs(map_reads, folder, pairs_sam, tmp_path):
    (tmp_path / "r.bed").write_text(
        "track name=x\n# mine\nchr1\t1000\t2000\tname\t0\t+\ncopies\t0\t500\nchr1\t1500\t2100\n\n"
    )
    pairs = ("-1", folder / "1.fq", "-2", folder / "2.fq", "--read-group", r"@RG\tID:g1\tSM:s")
    arguments = (*pairs, "--regions", tmp_path / "r.bed", "-o")
    for name, *more in (("o.sam",), ("p.sam", "--threads", 3), ("o.bam", "--sort")):
        done = map_reads(*arguments, tmp_path / name, *more)
        # All mapped reads are counted.
        assert (done.rc, done.stderr) == (0, pairs_sam[1])
    wanted = [("chr1", 1000, 2100), ("copies", 0, 500)]
    inside = {
        record.query_name
        for record in records(pairs_sam[0])
        for contig, start, end in wanted
        if record.reference_name == contig and record.get_overlap(start, end)
    }
    expected = [r.to_string() for r in records(pairs_sam[0]) if r.query_name in inside]
    assert 20 < len(expected) < 200
    assert [r.to_string() for r in records(tmp_path / "o.sam")] == expected
    assert (tmp_path / "o.sam").read_bytes() == (tmp_path / "p.sam").read_bytes()
    assert sorted(r.to_string() for r in records(tmp_path / "o.bam")) == sorted(expected)
    pysam.quickcheck("-v", str(tmp_path / "o.bam"))


def test_regions_without_reads(map_reads, folder, tmp_path):
    (tmp_path / "r.bed").write_text("chr1\t0\t1\n")
    for name, *more in (("o.sam",), ("o.bam", "--sort"), ("o.bam",)):
        done = map_reads(
            "-1", folder / "single.fq.gz", "--regions", tmp_path / "r.bed", "-o", tmp_path / name,
            *more,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        assert records(tmp_path / name) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "r.bed: no regions: write contig, start and end, separated by tabs"),
        ("# none\n", "r.bed: no regions: write contig, start and end, separated by tabs"),
        (
            "chr1 1 2\n",
            "r.bed, line 1: not BED: write contig, start and end, separated by tabs",
        ),
        (
            "chr1\t1\t2\nchrX\t1\t2\n",
            "r.bed, line 2: no contig chrX in the reference: its first contig is chr1",
        ),
        (
            "chr1\t5\t5\n",
            "r.bed, line 1: chr1 has {} bases: the start must be less than the end, and the end "
            "at most {}",
        ),
    ],
)
def test_regions_that_are_refused(map_reads, folder, pairs_sam, tmp_path, text, message):
    (tmp_path / "r.bed").write_text(text)
    done = map_reads("-1", folder / "1.fq", "--regions", "r.bed", "-o", "out.sam", cwd=tmp_path)
    with pysam.AlignmentFile(pairs_sam[0]) as file:
        length = f"{file.get_reference_length('chr1'):,}"
    message = message.format(length, length)
    assert (done.rc, done.stdout) == (1, "")
    assert done.stderr == f"map_reads.py: error: {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["r.bed"]


TAGS = [
    "RX:Z:ACGTACGT", "RX:Z:ACGT-TTGA\tQX:Z:IIII FFFF", "BC:Z:ACGTTGCA+CCAT\tQT:Z:IIIIIIII!IIII",
    "CB:Z:AAACCTGAGAAACCAT-1\tCR:Z:AAACCTGAGAAACCAT\tCY:Z:FFFFFFFFFFFFFFFF",
    "UB:Z:ACGTACGTAC\tUR:Z:ACGTACGTAC\tUY:Z:FFFFFFFFFF", "MI:Z:12/A\tOX:Z:ACG\tBZ:Z:III",
]  # fmt: skip


@pytest.mark.parametrize("tags", TAGS)
def test_barcodes_and_umis_of_comments(lines_of, tmp_path, tags):
    text = (GOLDEN / "reads.fq").read_text()
    text = re.sub(r"(?m)^@(\S+)$", lambda m: f"@{m[1]} {tags}", text)
    (tmp_path / "r.fq").write_text(text)
    reads = ("-1", tmp_path / "r.fq")
    found = lines_of("-C", "--all", reads=reads)
    assert len(found) > 15
    plain = lines_of("--all")
    assert found == [[*line, *tags.split("\t")] for line in plain]
    paf = lines_of("--comments", output="o.paf", reads=reads)
    assert paf == [[*line, *tags.split("\t")] for line in lines_of(output="o.paf")]


@pytest.mark.parametrize("comment", ["tp:A:P", "de:f:0.1", "cg:Z:4M", "nn:i:2"])
def test_paf_has_its_own_tags_once(run_program, golden_index, lines_of, tmp_path, comment):
    (tmp_path / "r.fq").write_text(f"@r {comment}\nACGT\n+\nIIII\n")
    reads = ("-1", tmp_path / "r.fq")
    assert lines_of("--comments", reads=reads)[0][-1] == comment
    done = run_program(
        SCRIPT, "--index", golden_index, *reads, "-o", tmp_path / "o.paf", "-C", "--backend", "cpu"
    )
    assert (done.rc, done.stderr) == (
        1,
        f"map_reads.py: error: read 'r': its comment '{comment}' has a tag that bwarp writes: "
        "omit --comments, or remove the tag from the FASTQ\n",
    )
