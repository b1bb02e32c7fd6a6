"""bwarp map --mark-duplicates: the same flags in every format, with any memory, and by merging."""

import json
import random

import pysam
import pytest

from tests.helpers.oracles.slow_duplicates import slow_duplicates
from tests.helpers.programs.mapped_reads import records


@pytest.fixture(scope="module")
def reads(folder, tmp_path_factory):
    """Write pairs of which some are copies, with a UMI, other qualities, or a mate of no genome.

    Their names have tile, x and y.
    """
    out = tmp_path_factory.mktemp("duplicates")
    rng = random.Random(8)
    files = [pysam.FastxFile(str(folder / f"{end}.fq")) for end in (1, 2)]
    pairs = [(one.sequence, two.sequence) for one, two in zip(*files, strict=True)][:700]
    pairs += rng.choices(pairs[:300], k=300)
    rng.shuffle(pairs)
    names = [f"p{i}:1:FC:1:1:{rng.randrange(500)}:{rng.randrange(99)}" for i in range(len(pairs))]
    for end in (0, 1):
        with open(out / f"{end + 1}.fq", "w") as file:
            for number, pair in enumerate(pairs):
                letters = pair[end]
                if end == number % 2 and number % 7 == 0:
                    letters = "ACAGT" * (len(letters) // 5)
                qualities = "".join(rng.choices("+0?I", k=len(letters)))
                umi = "ACGT"[number % 3]
                file.write(f"@{names[number]} RX:Z:{umi}\n{letters}\n+\n{qualities}\n")
    return out


@pytest.fixture
def marked(map_reads, reads, tmp_path):
    def marked(output, *options, files=("1.fq", "2.fq")):
        done = map_reads(
            "-1", reads / files[0], "-2", reads / files[1], "-o", tmp_path / output, "--sort",
            "--mark-duplicates", *options,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        return tmp_path / output, done.stderr

    return marked


@pytest.mark.parametrize("options", [(), ("--comments", "--barcode-tag", "RX"), ("--all",)])
def test_flags_of_every_format(marked, folder, tmp_path, options):
    metrics = ("--duplicate-metrics", tmp_path / "o.txt", "--optical-distance", 50)
    bam, said = marked("o.bam", *options, *metrics)
    expected, optical, _ = slow_duplicates(bam, "RX" if options[1:] else None, 50)
    found = records(bam)
    assert [record.is_duplicate for record in found] == [
        (record.query_name, None) in expected and not record.is_unmapped for record in found
    ]
    primary = [r for r in found if r.is_duplicate and not r.is_secondary and not r.is_supplementary]
    assert said.endswith(f", {len(primary)} duplicates\n")
    assert len(primary) > 50
    text = (tmp_path / "o.txt").read_text().splitlines()
    counts = dict(zip(text[1].split("\t"), text[2].split("\t"), strict=True))
    duplicate_pairs = sum(record.is_read1 and not record.mate_is_unmapped for record in primary)
    assert counts["LIBRARY"] == "Unknown Library"
    assert int(counts["READ_PAIR_DUPLICATES"]) == duplicate_pairs
    assert int(counts["UNPAIRED_READ_DUPLICATES"]) == len(primary) - 2 * duplicate_pairs > 3
    assert int(counts["READ_PAIR_OPTICAL_DUPLICATES"]) == len(optical) > 5
    assert int(counts["UNMAPPED_READS"]) == sum(record.is_unmapped for record in found)
    lines = pysam.view(str(bam)).splitlines()
    assert pysam.view(str(marked("o.sam", *options)[0])).splitlines() == lines
    cram, _ = marked("o.cram", *options)
    in_cram = pysam.view("-T", str(folder / "genome.fa"), str(cram)).splitlines()
    assert [line.split("\t")[:11] for line in in_cram] == [line.split("\t")[:11] for line in lines]


def by_sorted_tags(lines: str) -> list:
    return [(*line[:11], sorted(line[11:])) for line in map(str.split, lines.splitlines())]


@pytest.mark.parametrize("options", [(), ("--comments", "--barcode-tag", "RX")])
def test_tags_of_every_format(marked, folder, options):
    more = (*options, "--duplicate-tags", "--optical-distance", 50)
    bam, _ = marked("o.bam", *more)
    _, optical, _ = slow_duplicates(bam, "RX" if options else None, 50)
    assert len(optical) > 5
    plain, _ = marked("plain.bam", *options)
    expected = []
    for record in records(plain):
        if record.is_duplicate:
            kind = "SQ" if (record.query_name, None) in optical else "LB"
            record.set_tag("DT", kind)
        expected.append(record.to_string())
    assert pysam.view(str(bam)).splitlines() == expected
    sam, _ = marked("o.sam", *more)
    assert pysam.view(str(sam)).splitlines() == expected
    cram, _ = marked("o.cram", *more)
    in_cram = pysam.view("-T", str(folder / "genome.fa"), str(cram))
    assert by_sorted_tags(in_cram) == by_sorted_tags("\n".join(expected))
    header = pysam.view("-H", "--no-PG", str(bam)).splitlines()
    (program,) = [line for line in header if line[:3] == "@PG"]
    assert " --optical-distance 50 --duplicate-tags" in program


@pytest.mark.parametrize("options", [(), ("--duplicate-tags",)])
def test_memory_and_threads_change_nothing(marked, options, tmp_path):
    whole, _ = marked("1.bam", "--threads", 1, *options)
    other, _ = marked("2.bam", "--threads", 3, "--sort-memory", 1, *options)
    assert other.read_bytes() == whole.read_bytes()


def test_duplicates_across_parts(marked, reads, run_program, tmp_path):
    for end in (1, 2):
        lines = (reads / f"{end}.fq").read_text().splitlines(keepends=True)
        (reads / f"first{end}.fq").write_text("".join(lines[:2000]))
        (reads / f"second{end}.fq").write_text("".join(lines[2000:]))
    for part in ("first", "second"):
        stats = ("--stats", tmp_path / f"{part}.stats.json")
        marked(f"{part}.bam", *stats, files=(f"{part}1.fq", f"{part}2.fq"))
    done = run_program(
        "merge_alignments.py", tmp_path / "first.bam", tmp_path / "second.bam", "--units", "u", "u",
        "-o", tmp_path / "all.bam", "--mark-duplicates", "--duplicate-metrics", tmp_path / "m.txt",
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    expected, optical, _ = slow_duplicates(tmp_path / "all.bam")
    found = {r.query_name for r in records(tmp_path / "all.bam") if r.is_duplicate}
    assert found == {name for name, _ in expected}
    counts = json.loads((tmp_path / "all.stats.json").read_text())
    assert counts["duplicates"] == counts["units"]["u"]["duplicates"]
    parts = [
        json.loads((tmp_path / f"{part}.stats.json").read_text()) for part in ("first", "second")
    ]
    assert counts["duplicates"] > sum(part["duplicates"] for part in parts)
    # Tags within parts are replaced.
    for part in ("first", "second"):
        stats = ("--stats", tmp_path / f"{part}.stats.json", "--duplicate-tags")
        marked(f"{part}.bam", *stats, files=(f"{part}1.fq", f"{part}2.fq"))
    for more in ((), ("--duplicate-tags",)):
        done = run_program(
            "merge_alignments.py", tmp_path / "first.bam", tmp_path / "second.bam", "-o",
            tmp_path / "tagged.bam", "--mark-duplicates", *more,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        kinds = dict.fromkeys(found, "LB") | {name: "SQ" for name, _ in optical}
        for record in records(tmp_path / "tagged.bam"):
            assert record.is_duplicate == (record.query_name in found and not record.is_unmapped)
            kind = kinds[record.query_name] if more and record.is_duplicate else None
            assert dict(record.tags).get("DT") == kind
    text = (tmp_path / "m.txt").read_text()
    assert "picard.sam.DuplicationMetrics" in text
    assert int(text.splitlines()[2].split("\t")[7]) == len(optical) > 10


def test_files_without_scores_are_not_merged(map_reads, reads, run_program, tmp_path):
    done = map_reads(
        "-1", reads / "1.fq", "-2", reads / "2.fq", "-o", tmp_path / "u.bam", "--sort", "--stats",
        tmp_path / "u.stats.json",
    )  # fmt: skip
    assert done.rc == 0
    done = run_program(
        "merge_alignments.py", tmp_path / "u.bam", "-o", tmp_path / "o.bam", "--mark-duplicates"
    )
    assert (done.rc, done.stderr) == (
        1,
        f"merge_alignments.py: error: {tmp_path}/u.bam: a pair has no tags MC and ms: write the "
        "file with bwarp map --mark-duplicates\n",
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "u.bam", "u.bam.bai", "u.stats.json"
    ]  # fmt: skip
