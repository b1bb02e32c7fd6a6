"""Parts of a unit, mapped separately and merged, give the same bytes as one run."""

import json
import random

import pysam
import pytest

from bwarp.index.store import save_index
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.programs.programs_here import run_here

N_PAIRS = 10_000
TURNED = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a genome with a repeat, and pairs: in two files, in one with orphans, and a few."""
    folder = tmp_path_factory.mktemp("parts")
    rng = random.Random(11)
    genome = "".join(rng.choices("ACGT", k=5000))
    genome += genome[1000:2000]
    save_index(index_of([genome.encode()], sa_rate=4), folder / "i")
    with (
        open(folder / "1.fq", "w") as first,
        open(folder / "2.fq", "w") as second,
        open(folder / "both.fq", "w") as both,
        open(folder / "few.fq", "w") as few,
    ):
        for number in range(N_PAIRS):
            at = rng.randrange(len(genome) - 330)
            piece = genome[at : at + round(rng.gauss(250, 20))]
            ends = [_changed(rng, piece[:60]), _changed(rng, piece[-60:].translate(TURNED)[::-1])]
            texts = [f"@r{number} BC:Z:A{number}\n{read}\n+\n{'I' * 60}\n" for read in ends]
            first.write(texts[0])
            second.write(texts[1])
            if number < 600:
                both.writelines(texts if number % 7 else texts[:1])
            if number < 5:
                few.write(texts[0])
    (folder / "none.fq").write_text("")
    lanes = [f"@A1:4:CELL{number // 9}:{number}:1:1:1\nACGT\n+\nIIII\n" for number in range(200)]
    (folder / "lane.fq").write_text("".join(lanes))
    for name, groups in (("unaligned", "g"), ("groups", "gh")):
        header = {"HD": {"VN": "1.6"}, "RG": [{"ID": group, "SM": "s"} for group in groups]}
        with pysam.AlignmentFile(folder / f"{name}.bam", "wb", header=header) as file:
            for number in range(200):
                record = pysam.AlignedSegment(file.header)
                record.query_name, record.flag = f"u{number}", 4
                record.query_sequence = genome[20 * number : 20 * number + 60]
                record.set_tag("RX", f"ACG-{number}")
                record.set_tag("RG", groups[number % len(groups)])
                file.write(record)
    return folder


def _changed(rng, read):
    at = rng.randrange(300)
    return read[:at] + rng.choice("ACGTN") + read[at + 1 :] if at < 60 else read


def program(name, *arguments, folder):
    done = run_here(name, *arguments, folder=folder)
    assert done.rc == 0, done.said
    return done


def in_one(folder, work, reads, options, marked=()):
    """Return the merged file of one run, its index and its counts."""
    (work / "one").mkdir(exist_ok=True)
    unit = ("-o", work / "one/u.bam", "--sort", "--stats", work / "one/u.stats.json")
    program("map_reads", "--index", folder / "i", *reads, *unit, *options, *marked, folder=work)
    program("merge_alignments", work / "one/u.bam", "-o", work / "one.bam", *marked, folder=work)
    return contents(work / "one")


def in_parts(folder, work, reads, options, n_parts, size, estimate=(), marked=()):
    """Return the same for several parts."""
    index = ("--index", folder / "i")
    cut = ("-o", work / "cut", "--batch-size", size)
    program("batch_reads", *reads, *cut, folder=work)
    given = []
    if estimate is not None:
        given = ["--estimated-insert-size", work / "size.json"]
        out = ("--batches", work / "cut", "-o", work / "size.json", *estimate)
        program("estimate_map_insert_size", *index, *out, folder=work)
    files = []
    (work / "parts").mkdir(exist_ok=True)
    for part in range(1, n_parts + 1):
        files.append(work / f"parts/{part}.bam")
        out = ("-o", files[-1], "--sort", "--stats", files[-1].with_suffix(".stats.json"))
        batches = ("--batches", work / "cut", "--part", f"{part}/{n_parts}", *given)
        program("map_reads", *index, *batches, *out, *options, *marked, folder=work)
    names = ("--units", *(["u"] * n_parts))
    program("merge_alignments", *files, *names, "-o", work / "all.bam", *marked, folder=work)
    return contents(work / "all")


def contents(name):
    return [name.with_suffix(ending).read_bytes() for ending in (".bam", ".bam.bai", ".stats.json")]


def test_20000_reads(folder, tmp_path):
    reads = ("-1", folder / "1.fq", "-2", folder / "2.fq")
    expected = in_one(folder, tmp_path, reads, ())
    counts = json.loads(expected[2])
    assert counts["reads"] == 2 * N_PAIRS
    assert counts["properly_paired"] > 1.8 * N_PAIRS
    assert counts["units"]["u"]["insert_size"]["mean"] == pytest.approx(250, abs=3)
    for n_parts in (1, 3, 20):
        assert in_parts(folder, tmp_path, reads, (), n_parts, 500) == expected


@pytest.mark.parametrize(
    ("reads", "options", "estimate", "marked"),
    [
        (("-1", "few.fq"), ("--comments",), None, ()),
        (("-1", "none.fq"), (), (), ()),
        (("-1", "both.fq", "--interleaved"), ("--comments",), (), ()),
        (("-1", "both.fq", "--interleaved"), ("--mark-duplicates",), (), ("--mark-duplicates",)),
        (("-1", "both.fq", "--interleaved"), ("--orientation", "FR", "-B", "3"),
         ("--orientation", "FR", "-B", "3"), ()),
        (("-1", "both.fq", "--interleaved"), ("--insert-size", "240,30"), None, ()),
        (("-1", "both.fq", "--interleaved"), ("--hic",), None, ()),
        (("-1", "lane.fq", "--single", "few.fq"), ("-R", r"@RG\tID:1\tPU:auto"), None, ()),
        (("-1", "both.fq", "--interleaved", "--single", "few.fq"), (), (), ()),
        (("-1", "unaligned.bam"), ("-R", r"@RG\tID:1"), None, ()),
        (("-1", "unaligned.bam"), (), None, ()),
        (("-1", "groups.bam"), ("-R", r"@RG\tID:1"), None, ()),
    ],
)  # fmt: skip
def test_other_reads_and_options(folder, tmp_path, reads, options, estimate, marked):
    reads = [word if word.startswith("-") else folder / word for word in reads]
    options = [word for word in options if word != "--mark-duplicates"]
    expected = in_one(folder, tmp_path, reads, options, marked)
    assert in_parts(folder, tmp_path, reads, options, 3, 90, estimate, marked) == expected


def test_batches_of_several_read_groups_take_one(folder, tmp_path):
    cut = ("-1", folder / "groups.bam", "-o", tmp_path / "cut", "--batch-size", 90)
    program("batch_reads", *cut, folder=tmp_path)
    given = ("--index", folder / "i", "--batches", tmp_path / "cut", "-o", tmp_path / "o.bam")
    done = run_here("map_reads", *given, folder=tmp_path)
    assert done.rc == 2
    assert done.last_line == (
        f"map_reads.py: error: {tmp_path}/cut: its reads have 2 read groups, which batches do "
        "not keep: map the original files, or use one group for all reads (--read-group)"
    )
    assert not (tmp_path / "o.bam").exists()


def test_a_size_of_other_batches_gives_the_same(folder, tmp_path):
    """The estimate uses the first pairs, for any size of batches."""
    sizes = []
    for number, size in enumerate((100, 7000)):
        cut = tmp_path / f"cut{number}"
        reads = ("-1", folder / "1.fq", "-2", folder / "2.fq", "--batch-size", size)
        program("batch_reads", *reads, "-o", cut, folder=tmp_path)
        out = ("--batches", cut, "-o", tmp_path / "size.json")
        program("estimate_map_insert_size", "--index", folder / "i", *out, folder=tmp_path)
        sizes.append((tmp_path / "size.json").read_text())
    assert sizes[0] == sizes[1]
    assert json.loads(sizes[0])["orientation"] == "FR"


ESTIMATE = {"mean": 250.0, "standard_deviation": 20.0, "lowest": 170, "highest": 330}


@pytest.mark.parametrize(
    ("arguments", "rc", "message"),
    [
        ("", 2, "no reads are given: use -1 or --batches"),
        ("-1 r.fq --part 1/2", 2, "--part requires --batches"),
        ("--batches b -1 r.fq", 2, "--batches cannot be combined with -1, -2, --single or "
         "--interleaved"),
        ("--batches b", 1, "b: not a folder of reads: make one with bwarp batch-reads"),
        ("--batches c", 1, "c: no such file or folder: check the path"),
        ("--batches b --part 3/2", 2, "argument --part: '3/2' is not a part and a number of "
         "parts such as 3/20 (see map_reads.py --help)"),
        ("--batches b --estimated-insert-size s.json --insert-size 200,20", 2,
         "--estimated-insert-size cannot be combined with --insert-size or --hic"),
        ("--batches b --estimated-insert-size s.json --orientation RF", 2,
         "s.json: estimated for the orientation FR, not RF: use the same --orientation"),
    ],
)  # fmt: skip
def test_what_cannot_be_mapped(folder, tmp_path, monkeypatch, arguments, rc, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    (tmp_path / "s.json").write_text(json.dumps(ESTIMATE | {"orientation": "FR"}))
    index = ("--index", folder / "i", "-o", "o.bam")
    done = run_here("map_reads", *index, *arguments.split(), folder=tmp_path)
    assert (done.rc, done.last_line) == (rc, f"map_reads.py: error: {message}")
    assert done.left == ["b", "s.json"]


def test_every_file_needs_a_unit(folder, tmp_path):
    (tmp_path / "u.bam").write_text("")
    out = ("-o", tmp_path / "o.bam", "--units", "u", "v")
    done = run_here("merge_alignments", tmp_path / "u.bam", *out, folder=tmp_path)
    assert (done.rc, done.last_line) == (
        2, "merge_alignments.py: error: --units has 2 names for 1 file: name the unit of each file"
    )  # fmt: skip
