"""bwarp allmap: its files, the same bytes in every way of running it, its errors."""

import csv
import gzip
import itertools
import json
import random
import re
import shlex

import pysam
import pytest

import bwarp.cli.commands.find_alignments as find_alignments
from bwarp.index.store import save_index
from tests.helpers.oracles.loci_oracle import hard_genome, hard_reads, index_of_codes, loci_of
from tests.helpers.programs.programs_here import run_here

EDITS = 3
LETTERS = b"ACGTN"


def text_of(codes) -> str:
    return bytes(LETTERS[code] for code in codes).decode()


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return a folder with an index and reads, the contigs, and the codes of the reads."""
    folder = tmp_path_factory.mktemp("given")
    rng = random.Random(5)
    contigs = [contig for _ in range(3) for contig in hard_genome(rng)]
    reads = hard_reads(rng, contigs, 24, EDITS)
    save_index(index_of_codes(contigs), folder / "index")
    lines = [f"@r{i}\n{text_of(r)}\n+\n{'I' * len(r)}\n" for i, r in enumerate(reads)]
    (folder / "reads.fq").write_text("".join(lines))
    (folder / "one.fq").write_text("".join(lines[::2]))
    (folder / "two.fq").write_text("".join(lines[1::2]))
    (folder / "short.fa").write_text(f">short\nACG\n>empty\n\n>r0\n{text_of(reads[0])}\n")
    return folder, contigs, reads


def run(folder, *arguments):
    done = run_here("find_alignments", "--index", folder / "index", *arguments, folder=folder)
    assert done.rc == 0, done.said
    return done


def rows_of(path):
    text = path.read_bytes()
    text = gzip.decompress(text) if path.suffix == ".gz" else text
    return list(csv.DictReader(text.decode().splitlines(), delimiter="\t"))


#: Plain dynamic programming is slow, so loci are computed once per number of gaps.
_EXPECTED: dict[int, set] = {}


def expected(given, gaps=EDITS):
    _, contigs, reads = given
    if gaps not in _EXPECTED:
        _EXPECTED[gaps] = loci_of(reads, contigs, EDITS, gaps)
    return _EXPECTED[gaps]


def loci_written(rows, contigs):
    starts = {str(i): sum(map(len, contigs[:i])) for i in range(len(contigs))}
    return {
        (
            int(row["query"][1:]), int(row["strand"] == "-"),
            starts[row["contig"]] + int(row["start"]),
            starts[row["contig"]] + int(row["end"]), int(row["distance"]),
        )
        for row in rows
    }  # fmt: skip


@pytest.mark.parametrize("gaps", [0, 2])
def test_the_command_in_the_header_can_be_run(given, tmp_path, gaps):
    """File names are filled in."""
    folder, _, _ = given
    limits = ("--edits", "4%", "--gaps", gaps, "--report", "strata:1", "--extension", "local")
    run(folder, "-1", folder / "reads.fq", *limits, "--xa", "-o", tmp_path / "once.bam")
    with pysam.AlignmentFile(tmp_path / "once.bam") as bam:
        command = shlex.split(bam.header.to_dict()["PG"][0]["CL"])
    names = {"READS.fq": folder / "reads.fq", "OUT.bam": tmp_path / "again.bam"}
    assert command[:4] == ["bwarp", "allmap", "--index", "INDEX"]
    run(folder, *(names.get(word, word) for word in command[4:]))
    assert (tmp_path / "again.bam").read_bytes() == (tmp_path / "once.bam").read_bytes()


@pytest.mark.parametrize("gaps", [0, 1, 3])
def test_every_locus_is_a_row(given, tmp_path, gaps):
    folder, contigs, _ = given
    out = tmp_path / "o.tsv.gz"
    run(folder, "-1", folder / "reads.fq", "-o", out, "--edits", EDITS, "--gaps", gaps)
    rows = rows_of(out)
    names = index_names(folder)
    for row in rows:
        row["contig"] = str(names.index(row["contig"]))
        parts = [int(row[name]) for name in ("mismatches", "insertions", "deletions")]
        assert sum(parts) == int(row["distance"])
        assert parts[1] + parts[2] <= gaps
        assert (
            int(row["end"]) - int(row["start"])
            == len(given[2][int(row["query"][1:])]) + parts[2] - parts[1]
        )
    assert loci_written(rows, contigs) == expected(given, gaps=gaps)
    assert len(rows) == len(expected(given, gaps=gaps))


@pytest.mark.parametrize("limit", [[], ["--max-places", 1]])
def test_reads_are_counted_by_loci_and_edits(given, tmp_path, limit):
    """Whatever the limit of loci that are written."""
    folder, _, _ = given
    given_files = ("-1", folder / "reads.fq", "-o", tmp_path / "o.tsv", "--edits", EDITS)
    run(folder, *given_files, "--stats", tmp_path / "s.json", *limit)
    counts = json.loads((tmp_path / "s.json").read_text())
    distances: dict[int, list[int]] = {}
    for read, _, _, _, distance in expected(given):
        distances.setdefault(read, []).append(distance)
    wanted: dict[tuple[int, int], int] = {}
    for found in distances.values():
        power = next(power for power in range(60) if 2**power >= len(found))
        wanted[min(found), power] = wanted.get((min(found), power), 0) + 1
    table = counts["reads_by_loci"]
    made = {(e, p): n for e, row in enumerate(table) for p, n in enumerate(row) if n}
    assert made == wanted
    assert sum(map(sum, table)) == counts["aligned"] + counts["over"]
    assert all(row[-1] for row in table if row)
    assert (counts["over"] > 0) == bool(limit)


def index_names(folder) -> list[str]:
    return [one["name"] for one in json.loads((folder / "index/index.json").read_text())["contigs"]]


def test_bam_holds_the_loci_and_is_valid(given, tmp_path):
    folder, _, reads = given
    out = tmp_path / "o.bam"
    run(
        folder, "-1", folder / "reads.fq", "-o", out, "--edits", EDITS, "-R", r"@RG\tID:x\tSM:s",
        "--stats", tmp_path / "s.json",
    )  # fmt: skip
    wanted = expected(given)
    with pysam.AlignmentFile(out) as bam:
        records = list(bam)
        assert bam.has_index()
        header = bam.header.to_dict()
    counts = json.loads((tmp_path / "s.json").read_text())
    assert f"reads={len(reads)} aligned={counts['aligned']}" in header["CO"][0]
    assert counts["aligned"] + counts["without"] + counts["skipped"] + counts["over"] == len(reads)
    mapped = [record for record in records if not record.is_unmapped]
    assert len(mapped) == len(wanted) == counts["loci"]
    assert [r.reference_start for r in mapped] == sorted(r.reference_start for r in mapped) or (
        len({r.reference_id for r in mapped}) > 1
    )
    primary = [record for record in records if not record.is_secondary]
    assert sorted(int(r.query_name[1:]) for r in primary) == list(range(len(reads)))
    by_read = {}
    for record in mapped:
        assert record.get_tag("RG") == "x"
        assert record.get_tag("AS") == -record.get_tag("NM")
        by_read.setdefault(int(record.query_name[1:]), []).append(record)
    for read, those in by_read.items():
        distances = sorted(d for number, *_, d in wanted if number == read)
        assert sorted(r.get_tag("NM") for r in those) == distances
        assert {r.get_tag("NH") for r in those} == {len(those)}
        assert sorted(r.get_tag("HI") for r in those) == list(range(1, len(those) + 1))
        best = distances.count(distances[0])
        assert {r.get_tag("X0") for r in those} == {best}
        assert {r.get_tag("X1") for r in those} == {len(those) - best}
        (first,) = [r for r in those if not r.is_secondary]
        assert first.get_tag("NM") == distances[0]
        if best > 1:
            assert first.mapping_quality <= 3
        bases = text_of(reads[read])
        assert first.get_forward_sequence() == bases
        assert first.qual == "I" * len(bases)
        # MD and CIGAR reproduce the reference.
        assert len(first.get_reference_sequence()) == first.reference_length


def test_pairs_name_their_mates(given, tmp_path):
    folder, _, _ = given
    out = tmp_path / "o.bam"
    make_mates(folder)
    run(folder, "-1", folder / "one.fq", "-2", folder / "one.fq.2", "-o", out, "-e", 2)
    with pysam.AlignmentFile(out) as bam:
        records = [record for record in bam if not record.is_proper_pair]
    assert all(record.is_paired for record in records)
    primary = {
        (record.query_name, record.is_read1): record
        for record in records
        if not record.is_secondary
    }
    for record in records:
        mate = primary[record.query_name, not record.is_read1]
        assert record.mate_is_unmapped == mate.is_unmapped
        assert record.next_reference_id == mate.reference_id
        assert record.next_reference_start == mate.reference_start
        assert record.mate_is_reverse == mate.is_reverse
    assert {record.mate_is_unmapped for record in records if record.is_secondary} == {True, False}


@pytest.fixture(scope="module")
def templates(tmp_path_factory):
    """Return an index and 80 pairs of 200 to 260 bases; every tenth end 1 has a distant copy."""
    folder = tmp_path_factory.mktemp("templates")
    rng = random.Random(11)
    genome = [rng.randrange(4) for _ in range(4000)]
    genome[3000:3400] = genome[1000:1400]
    genome[1100:1103] = [0, 0, 0]
    # A tandem repeat: pairs there have several insert sizes.
    genome[2000:2120] = [rng.randrange(4) for _ in range(15)] * 8
    save_index(index_of_codes([genome]), folder / "index")
    files = {end: (folder / f"{end}.fq").open("w") for end in (1, 2)}
    for number in range(80):
        size, at = rng.randrange(200, 260), rng.randrange(3700)
        at = (1000 + number, 1990)[number // 10 % 2] if number % 10 == 0 else at
        ends = [genome[at : at + 50], [3 - b for b in genome[at : at + size][::-1][:50]]]
        if number % 3 == 0:
            ends[0][20] = 3 - ends[0][20]
        for end, codes in enumerate(ends[:: rng.choice([1, -1])], 1):
            files[end].write(f"@t{number}\n{text_of(codes)}\n+\n{'I' * len(codes)}\n")
    for file in files.values():
        file.close()
    return folder


def test_a_proper_pair_is_two_records_that_name_each_other(templates, tmp_path):
    out, stats = tmp_path / "o.bam", tmp_path / "s.json"
    run(
        templates, "-1", templates / "1.fq", "-2", templates / "2.fq", "-o", out, "-e", 4,
        "--stats", stats,
    )  # fmt: skip
    counts = json.loads(stats.read_text())
    lowest, highest = counts["lowest_insert_size"], counts["highest_insert_size"]
    assert 100 < lowest < 200
    assert 260 < highest < 360
    with pysam.AlignmentFile(out) as bam:
        records = list(bam)
    pairs = {}
    for record in records:
        if record.is_proper_pair:
            pairs.setdefault((record.query_name, record.get_tag("HI")), []).append(record)
    assert len(pairs) == counts["pairs"] > 85
    several = 0
    for (name, number), (one, two) in pairs.items():
        assert one.is_read1 != two.is_read1
        assert one.is_secondary == two.is_secondary
        assert one.is_reverse != two.is_reverse
        for record, mate in ((one, two), (two, one)):
            assert record.next_reference_start == mate.reference_start
            assert record.mate_is_reverse == mate.is_reverse
            assert not record.mate_is_unmapped
        forward, reverse = (two, one) if one.is_reverse else (one, two)
        size = reverse.reference_end - forward.reference_start
        assert (forward.template_length, reverse.template_length) == (size, -size)
        assert lowest <= size <= highest
        of_template = [key for key in pairs if key[0] == name]
        assert {record.get_tag("NH") for record in (one, two)} == {len(of_template)}
        assert {key[1] for key in of_template} == set(range(1, len(of_template) + 1))
        several += number > 1
        if not one.is_secondary:
            edits = [sum(r.get_tag("NM") for r in pairs[key]) for key in of_template]
            assert one.get_tag("NM") + two.get_tag("NM") == min(edits)
            assert one.get_tag("X0") == edits.count(min(edits))
            assert one.get_tag("X0") + one.get_tag("X1") == len(of_template)
    assert several > 5
    primary = [record for record in records if not record.is_secondary]
    assert len(primary) == 160


def test_pairs_in_tables(templates, tmp_path):
    out = tmp_path / "o.tsv"
    command = ("-1", templates / "1.fq", "-2", templates / "2.fq", "-e", 4, "-I", "230,10")
    run(templates, *command, "-o", out)
    rows = rows_of(out)
    pairs = {}
    for row in rows:
        name, end = row["query"].split("/")
        if int(row["pair"]):
            pairs.setdefault((name, int(row["pair"])), {})[end] = row
    for ends in pairs.values():
        assert set(ends) == {"1", "2"}
        forward, reverse = sorted(ends.values(), key=lambda row: row["strand"])
        assert forward["strand"] == "+"
        assert reverse["strand"] == "-"
        assert 190 <= int(reverse["end"]) - int(forward["start"]) <= 270
    run(templates, *command, "-o", tmp_path / "o.paf")
    lines = [line.split("\t") for line in (tmp_path / "o.paf").read_text().splitlines()]
    assert [line[-1] for line in lines] == [f"pr:i:{row['pair']}" for row in rows]
    run(templates, *command, "-o", tmp_path / "best.tsv", "--report", "best")
    best = rows_of(tmp_path / "best.tsv")
    edits = {key: sum(int(r["distance"]) for r in ends.values()) for key, ends in pairs.items()}
    least = {}
    for (name, _), n in edits.items():
        least[name] = min(n, least.get(name, n))
    wanted = sorted((name, n) for (name, _), n in edits.items() if n == least[name])
    found = [row["query"].split("/")[0] for row in best if row["pair"] != "0"]
    assert sorted(found) == sorted(2 * [name for name, _ in wanted])
    run(templates, *command, "-o", tmp_path / "few.tsv", "--max-places", 1)
    over = {row["query"]: int(row["loci"]) for row in rows_of(tmp_path / "few.over.tsv")}
    several = {name: max(k for n, k in pairs if n == name) for name, number in pairs if number > 1}
    assert several
    for name, n in several.items():
        assert over[f"{name}/1"] == over[f"{name}/2"] == n


@pytest.mark.parametrize("output", ["o.tsv", "o.bam"])
def test_pairs_have_the_same_bytes_whatever_the_chunks_and_threads(
    templates, tmp_path, monkeypatch, output
):
    made = set()
    for reads in (10**4, 4, 6):
        for threads in (1, 3):
            monkeypatch.setattr(find_alignments, "reads_a_chunk", lambda *_, reads=reads: reads)
            out = tmp_path / f"{reads}_{threads}"
            out.mkdir()
            run(
                templates, "-1", templates / "1.fq", "-2", templates / "2.fq", "-o", out / output,
                "-e", 3, "--threads", threads,
            )  # fmt: skip
            made.add((out / output).read_bytes())
    assert len(made) == 1


@pytest.mark.parametrize("paired", [False, True])
def test_other_loci_in_a_tag(templates, tmp_path, paired):
    reads = ("-1", templates / "1.fq", *(("-2", templates / "2.fq") if paired else ()))
    run(templates, *reads, "-o", tmp_path / "o.bam", "-e", 4)
    run(templates, *reads, "-o", tmp_path / "x.bam", "-e", 4, "--xa")
    loci, in_tags = {}, {}
    with pysam.AlignmentFile(tmp_path / "o.bam") as bam:
        for r in bam:
            sign = "-" if r.is_reverse else "+"
            loci.setdefault((r.query_name, r.is_read2), set()).add(
                (r.reference_name, f"{sign}{r.reference_start + 1}", r.cigarstring, r.get_tag("NM"))
            )
    several = 0
    with pysam.AlignmentFile(tmp_path / "x.bam") as bam:
        for r in bam:
            assert not r.is_secondary
            sign = "-" if r.is_reverse else "+"
            of_read = in_tags.setdefault((r.query_name, r.is_read2), [])
            of_read.append(
                (r.reference_name, f"{sign}{r.reference_start + 1}", r.cigarstring, r.get_tag("NM"))
            )
            if r.has_tag("XA"):
                tag = r.get_tag("XA")
                assert tag.endswith(";")
                for one in tag[:-1].split(";"):
                    contig, position, cigar, edits = one.split(",")
                    of_read.append((contig, position, cigar, int(edits)))
                several += 1
    assert several
    assert {read: sorted(those) for read, those in in_tags.items()} == {
        read: sorted(those) for read, those in loci.items()
    }


def replayed(row, read, contig, scores):
    """Return what the CIGAR in a row of the TSV implies: ends in read and contig, score, edits."""
    match, mismatch, gap_open, gap_extend = scores
    if row["strand"] == "-":
        read = [3 - base if base < 4 else 4 for base in read[::-1]]
    at, place, score, counts = 0, int(row["start"]), 0, {"X": 0, "I": 0, "D": 0}
    for size, operation in re.findall(r"(\d+)([MIDS])", row["cigar"]):
        size = int(size)
        if operation == "M":
            for one, other in zip(read[at : at + size], contig[place : place + size], strict=True):
                score += match if one == other < 4 else mismatch
                counts["X"] += not one == other < 4
        elif operation in "ID":
            score -= gap_open + size * gap_extend
            counts[operation] += size
        at += size if operation != "D" else 0
        place += size if operation in "MD" else 0
    return at, place, score, counts


@pytest.mark.parametrize("extension", ["semiglobal", "local"])
def test_alignments_by_scores(given, tmp_path, extension):
    folder, contigs, reads = given
    scores = (2, -3, 5, 2)
    options = ["-1", folder / "reads.fq", "-e", EDITS, "--extension", extension]
    options += ["-A", 2, "--mismatch", -3, "-O", 5, "-E", 2]
    for name in ("o.tsv", "o.paf", "o.bam", "x.bam"):
        more = ["--xa"] if name == "x.bam" else []
        run(folder, *options, *more, "-o", tmp_path / name)
    run(folder, "-1", folder / "reads.fq", "-e", EDITS, "-o", tmp_path / "e.tsv")
    rows, by_edits = rows_of(tmp_path / "o.tsv"), rows_of(tmp_path / "e.tsv")
    assert len(rows) == len(by_edits) > 100
    names = index_names(folder)
    for row, other in zip(rows, by_edits, strict=True):
        for key in ("query", "strand", "contig"):
            assert row[key] == other[key]
        assert row["locus_edits"] == other["distance"]
        assert int(other["start"]) <= int(row["start"]) < int(row["end"]) <= int(other["end"])
        read = reads[int(row["query"][1:])]
        at, place, score, counts = replayed(row, read, contigs[names.index(row["contig"])], scores)
        assert (at, place, score) == (len(read), int(row["end"]), int(row["score"]))
        _, _, score_by_edits, _ = replayed(other, read, contigs[names.index(row["contig"])], scores)
        assert score >= score_by_edits
        written = [int(row[key]) for key in ("mismatches", "insertions", "deletions")]
        assert written == [counts["X"], counts["I"], counts["D"]]
        assert int(row["distance"]) == sum(written)
        assert ("S" in row["cigar"]) <= (extension == "local")
    assert ("S" in "".join(row["cigar"] for row in rows)) == (extension == "local")
    _paf_says_the_same(tmp_path / "o.paf", rows, reads)
    _bam_says_the_same(tmp_path, rows, reads)


def _paf_says_the_same(path, rows, reads):
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    for line, row in zip(lines, rows, strict=True):
        first, last = (re.search(r"^(\d+)S", row["cigar"]), re.search(r"(\d+)S$", row["cigar"]))
        first, last = (int(found[1]) if found else 0 for found in (first, last))
        first, last = (last, first) if row["strand"] == "-" else (first, last)
        length = len(reads[int(row["query"][1:])])
        assert list(map(int, line[1:4])) == [length, first, length - last]
        assert [line[7], line[8]] == [row["start"], row["end"]]
        tags = dict(tag.split(":", 1) for tag in line[12:])
        assert tags["NM"] == f"i:{row['distance']}"
        assert tags["AS"] == f"i:{row['score']}"
        assert tags["cg"] == "Z:" + re.sub(r"\d+S", "", row["cigar"])
        assert tags.get("Xd", f"i:{row['distance']}") == f"i:{row['locus_edits']}"


def _bam_says_the_same(folder, rows, reads):
    wanted = sorted(
        (row["query"], row["strand"], row["contig"], int(row["start"]), row["cigar"],
         int(row["distance"]), int(row["score"]), int(row["locus_edits"]))
        for row in rows
    )  # fmt: skip
    found, in_tags = [], []
    with pysam.AlignmentFile(folder / "o.bam") as bam:
        assert "--extension" in bam.header.to_dict()["PG"][0]["CL"]
        records = [record for record in bam if not record.is_unmapped]
    for r in records:
        strand, edits = "-" if r.is_reverse else "+", r.get_tag("NM")
        locus_edits = r.get_tag("Xd") if r.has_tag("Xd") else edits
        one = (r.query_name, strand, r.reference_name, r.reference_start, r.cigarstring, edits)
        found.append((*one, r.get_tag("AS"), locus_edits))
        if not r.is_secondary:
            assert r.infer_query_length() == len(reads[int(r.query_name[1:])])
            assert len(r.get_reference_sequence()) == r.reference_length
    assert sorted(found) == wanted
    assert [(r.reference_id, r.reference_start) for r in records] == sorted(
        (r.reference_id, r.reference_start) for r in records
    )
    with pysam.AlignmentFile(folder / "x.bam") as bam:
        for r in (record for record in bam if not record.is_unmapped):
            strand = "-" if r.is_reverse else "+"
            in_tags.append((r.query_name, strand, r.reference_name, r.reference_start,
                            r.cigarstring, r.get_tag("NM")))  # fmt: skip
            for one in r.get_tag("XA")[:-1].split(";") if r.has_tag("XA") else ():
                contig, position, cigar, edits = one.split(",")
                in_tags.append((r.query_name, position[0], contig, int(position[1:]) - 1, cigar,
                                int(edits)))  # fmt: skip
    assert sorted(in_tags) == [one[:6] for one in wanted]


def test_proper_pairs_by_scores(templates, tmp_path):
    command = ("-1", templates / "1.fq", "-2", templates / "2.fq", "-e", 4, "-I", "230,10")
    run(templates, *command, "-o", tmp_path / "o.bam", "--extension", "local", "-A", 1, "-B", 9)
    with pysam.AlignmentFile(tmp_path / "o.bam") as bam:
        records = [record for record in bam if record.is_proper_pair]
    assert any("S" in record.cigarstring for record in records)
    ends = {}
    for r in records:
        ends.setdefault((r.query_name, r.get_tag("HI")), []).append(r)
    for one, other in ends.values():
        assert one.next_reference_start == other.reference_start
        assert other.next_reference_start == one.reference_start
        firsts = [r.reference_end - 1 if r.is_reverse else r.reference_start for r in (one, other)]
        assert one.template_length == -other.template_length
        assert abs(one.template_length) == abs(firsts[0] - firsts[1]) + 1


def make_mates(folder) -> None:
    """Write the second file with the names of the first, as in pairs."""
    first = (folder / "one.fq").read_text().splitlines()
    second = (folder / "two.fq").read_text().splitlines()
    second[::4] = first[::4]
    (folder / "one.fq.2").write_text("".join(f"{line}\n" for line in second))


@pytest.mark.parametrize("extension", ["edits", "local"])
@pytest.mark.parametrize("output", ["o.tsv", "o.paf", "o.bam"])
def test_the_same_bytes_whatever_the_way(given, tmp_path, monkeypatch, output, extension):
    folder, _, _ = given
    common = ("-1", folder / "reads.fq", "-e", 3, "--gaps", 1, "--extension", extension)
    ways = {
        "plain": (),
        "off": ("--filter", "off"),
        "histogram": ("--filter", "histogram"),
        "both": ("--filter", "both"),
        "exact": ("--seed-mismatches", 0),
        "inexact": ("--seed-mismatches", 1),
    }
    made = {}
    for name, options in ways.items():
        out = tmp_path / name
        out.mkdir()
        run(folder, *common, "-o", out / output, *options)
        made[name] = (out / output).read_bytes()
    monkeypatch.setattr(find_alignments, "reads_a_chunk", lambda *_: 5)
    (tmp_path / "few").mkdir()
    run(folder, *common, "-o", tmp_path / "few" / output, "--threads", 3)
    assert {*made.values(), (tmp_path / "few" / output).read_bytes()} == {made["plain"]}


def test_best_and_strata(given, tmp_path):
    folder, _, _ = given
    wanted = expected(given)
    least = {}
    for read, *_, d in wanted:
        least[read] = min(d, least.get(read, d))
    for report, more in (("best", 0), ("strata:1", 1)):
        run(
            folder, "-1", folder / "reads.fq", "-o", tmp_path / "o.tsv", "-e", 3, "--report", report
        )
        rows = rows_of(tmp_path / "o.tsv")
        assert len(rows) == sum(locus[-1] <= least[locus[0]] + more for locus in wanted)


def test_every_read_is_in_one_table(given, tmp_path):
    folder, _, reads = given
    out = tmp_path / "o.tsv"
    stats = tmp_path / "o.json"
    run(folder, "-1", folder / "reads.fq", "-o", out, "-e", 3, "--max-places", 2, "--stats", stats)
    wanted = [locus[0] for locus in expected(given)]
    counts = {read: wanted.count(read) for read in range(len(reads))}
    over = {row["query"]: int(row["loci"]) for row in rows_of(tmp_path / "o.over.tsv")}
    assert over == {f"r{read}": n for read, n in counts.items() if n > 2}
    assert over
    aligned = {row["query"] for row in rows_of(out)}
    assert aligned == {f"r{read}" for read, n in counts.items() if 1 <= n <= 2}
    reported = json.loads(stats.read_text())
    assert (reported["over"], reported["aligned"]) == (len(over), len(aligned))
    assert reported["loci_over"] == sum(over.values())


def test_reads_that_cannot_be_searched_are_listed(given, tmp_path):
    folder, _, _ = given
    run(folder, "-1", folder / "short.fa", "-o", tmp_path / "o.tsv", "-e", 3)
    assert rows_of(tmp_path / "o.skipped.tsv") == [
        {"query": name, "reason": "no longer than the edits allowed"} for name in ("short", "empty")
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "o.txt", "-e", 1),
         "o.txt: the output must end in .bam, .tsv, .tsv.gz, .paf or .paf.gz"),
        (("-o", "o.tsv", "-e", 32), "--edits 32 is out of range: use 0 to 31"),
        (("-o", "o.tsv", "-e", "60%"), "--edits 60% is out of range: use 0% to 50%"),
        (("-o", "o.tsv", "-e", 2, "--gaps", 3),
         "--gaps 3 is greater than --edits 2: each base of a gap is an edit: use 0 to 2"),
        (("-o", "o.tsv", "-e", 2, "--seed-mismatches", 5),
         "argument --seed-mismatches: '5' is not a whole number from 0 to 4, or auto"),
        (("-o", "o.tsv", "-e", "x"), "'x' is neither a whole number nor a percentage such as 3%"),
        (("-o", "o.tsv", "-e", 2, "--report", "some"),
         "'some' is not all, best, or strata:N such as strata:1"),
        (("-o", "o.tsv", "-e", 2, "--seed-mismatches", "x"),
         "'x' is not a whole number from 0 to 4, or auto"),
        (("-o", "o.tsv", "-e", 2, "-R", "@RG\tID:1"),
         "--read-group requires BAM output"),
        (("-o", "o.tsv", "-e", 2, "--xa"),
         "--xa requires BAM output"),
        (("-o", "o.tsv", "-e", 2, "--gap-open", 4),
         "gap-open requires the extension semiglobal or local"),
        (("-o", "o.tsv", "-e", 2, "--extension", "local", "-A", 20),
         "gap-open is 120: use a whole number from 0 to 100"),
        (("-o", "o.tsv", "-e", 2, "-I", "300,40"),
         "--insert-size and --orientation require pairs: use -2 or --interleaved"),
    ],
)  # fmt: skip
def test_refusals_are_one_line(given, tmp_path, monkeypatch, arguments, message):
    folder, _, _ = given
    monkeypatch.chdir(tmp_path)
    before = sorted(folder.iterdir())
    done = run_here(
        "find_alignments", "--index", folder / "index", "-1", folder / "reads.fq", *arguments,
        folder=tmp_path,
    )  # fmt: skip
    assert done.rc == 2
    assert done.last_line.removesuffix(" (see find_alignments.py --help)").endswith(message)
    assert done.left == []
    assert sorted(folder.iterdir()) == before


def test_reads_of_which_none_is_aligned(given, tmp_path):
    folder, _, _ = given
    (tmp_path / "far.fa").write_text(">far\n" + "CCGGTTCCGGAACCGGTTAACCGGATCCGGCATGC" * 3 + "\n")
    run(folder, "-1", tmp_path / "far.fa", "-o", tmp_path / "o.bam", "-e", 1)
    with pysam.AlignmentFile(tmp_path / "o.bam") as bam:
        (record,) = bam.fetch(until_eof=True)
    assert record.is_unmapped
    assert record.mapping_quality == 0


def test_alleles_that_fit_best(tmp_path):
    """As HLA typing requires: exactly the alleles that a read fits best."""
    rng = random.Random(2)
    gene = [rng.randrange(4) for _ in range(800)]
    alleles = []
    for _ in range(12):
        allele = list(gene)
        for at in rng.sample(range(800), 12):
            allele[at] = rng.randrange(4)
        alleles.append(allele)
    save_index(index_of_codes(alleles), tmp_path / "index")
    wanted, lines = {}, []
    for number in range(60):
        at = rng.randrange(700)
        read = list(rng.choice(alleles)[at : at + 100])
        if number % 3 == 0:
            read[rng.randrange(100)] = 4
        edits = [
            min(
                sum(a != b for a, b in zip(read, allele[i : i + 100], strict=True))
                for i in range(701)
            )
            for allele in alleles
        ]
        wanted[f"r{number}"] = {(i, n) for i, n in enumerate(edits) if n == min(edits) <= 3}
        lines.append(f"@r{number}\n{text_of(read)}\n+\n{'I' * 100}\n")
    (tmp_path / "r.fq").write_text("".join(lines))
    run(
        tmp_path, "-1", tmp_path / "r.fq", "-o", tmp_path / "o.bam", "--edits", "3%",
        "--report", "best",
    )  # fmt: skip
    pysam.sort("-n", "-o", str(tmp_path / "n.bam"), str(tmp_path / "o.bam"))
    found: dict[str, set] = {}
    with pysam.AlignmentFile(tmp_path / "n.bam") as bam:
        names = [record.query_name for record in bam if not record.is_unmapped]
        bam.reset()
        for record in bam:
            of_read = found.setdefault(record.query_name, set())
            if not record.is_unmapped:
                of_read.add((record.reference_id, record.get_tag("NM")))
                assert record.get_tag("X1") == 0
                assert record.get_tag("NH") == len(wanted[record.query_name])
    assert found == wanted
    assert len(names) == sum(map(len, wanted.values())) > 80
    # Records of a read are adjacent.
    assert sum(a != b for a, b in itertools.pairwise(names)) == len(set(names)) - 1
