"""The programs of the chain: together they write the same bytes as bwarp allmap."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest

from bwarp.cli.steps import batch_reads
from bwarp.counted import counted
from bwarp.index.store import save_index
from bwarp.io.chunk_files import open_chunk_file
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.programs.programs_here import run_here

N_READS = 60
LETTERS = "ACGT"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a genome with repeats, its index, and single and paired reads."""
    folder = tmp_path_factory.mktemp("chain")
    rng = random.Random(3)
    genome = "".join(rng.choice(LETTERS) for _ in range(4000))
    repeat = genome[500:900]
    like = "".join(rng.choice(LETTERS) if rng.random() < 0.03 else base for base in repeat)
    contigs = [genome + like, repeat + "NNNN" + "ACG" * 40 + "A" * 90]
    (folder / "contigs.txt").write_text("\n".join(contigs))
    save_index(index_of([c.encode() for c in contigs], sa_rate=4), folder / "i")
    for name in ("r", "p1", "p2"):
        with open(folder / f"{name}.fq", "w") as file:
            for number in range(N_READS):
                read = _read(rng, contigs)
                file.write(f"@q{number}\n{read}\n+\n{'I' * len(read)}\n")
    return folder


def _read(rng, contigs):
    contig = rng.choice(contigs)
    length = rng.choice([3, 30, 50, 70])
    at = rng.randrange(len(contig) - length)
    read = list(contig[at : at + length])
    for _ in range(rng.randrange(5)):
        spot = rng.randrange(len(read) or 1)
        read[spot : spot + 1] = rng.choice([[], ["A"], ["C"], ["G", "G"], ["N"]])
    return "".join(read) or "A"


def program(name, *arguments, folder):
    done = run_here(name, *arguments, folder=folder)
    assert done.rc == 0, done.said
    return done.last_line


def chain(
    folder, work, reads, limits, written, ending, batch_size, candidate_filter="auto", rounds=1,
    with_estimate=False,
):  # fmt: skip
    """Run each step on each batch; return the folder of merged outputs."""
    written, aligned = list(written), []
    for flag in ("--extension", "-A", "-B", "--gap-open"):
        if flag in written:
            at = written.index(flag)
            aligned += written[at : at + 2]
            del written[at : at + 2]
    work.mkdir()
    index = ("--index", folder / "i")
    program("batch_reads", *reads, "-o", work / "b", "--batch-size", batch_size, folder=work)
    batches = []
    for number in range(len(list((work / "b").iterdir()))):
        batch = ("--reads", work / "b" / f"{number}.reads")
        loci = []
        for one in range(rounds):
            name = f"{work}/{number}.{one}"
            after = ["--after", loci[0]] if one else []
            seeds = ("-o", f"{name}.seeds", *limits, *after)
            program("seed_reads", *index, *batch, *seeds, folder=work)
            seeds = ("--seeds", f"{name}.seeds", "-o", f"{name}.hits")
            program("locate_seeds", *index, *seeds, folder=work)
            candidates = f"{name}.hits"
            if candidate_filter != "off":
                hits = ("--hits", candidates, "-o", f"{name}.candidates")
                hits += ("--filter", candidate_filter)
                program("filter_candidates", *index, *batch, *hits, folder=work)
                candidates = f"{name}.candidates"
            some = ("--candidates", candidates, "-o", f"{name}.loci")
            program("extend_candidates", *index, *batch, *some, *aligned, folder=work)
            loci.append(f"{name}.loci")
        batches.append((batch, loci))
    if with_estimate:
        reads, loci = zip(*((path, loci) for (_, path), (loci,) in batches), strict=True)
        given = ("--reads", *reads, "--loci", *loci, "-o", work / "size.json")
        program("estimate_allmap_insert_size", *index, *given, folder=work)
        written = [*written, "--estimated-insert-size", work / "size.json"]
    outputs = []
    for number, (batch, loci) in enumerate(batches):
        outputs.append(f"{work}/{number}.{ending}")
        out = ("-o", outputs[-1], "--stats", f"{work}/{number}.stats.json", *written)
        if ending == "bam" and number % 2:
            out += ("--uncompressed",)
        program("write_alignments", *index, *batch, "--loci", *loci, *out, folder=work)
    (work / "merged").mkdir()
    program("merge_loci", *outputs, "-o", work / "merged" / f"s.{ending}", folder=work)
    return work / "merged"


def in_one(folder, work, reads, limits, written, ending, candidate_filter="auto", unpaired=True):
    work.mkdir()
    out = ("-o", work / f"s.{ending}", "--stats", work / "s.stats.json", *written)
    given = (*(["--unpaired"] if unpaired else []), "--index", folder / "i", *reads)
    program("find_alignments", *given, *out, *limits, "--filter", candidate_filter, folder=work)
    return work


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


LIMITS = ("--edits", "4")
BEST = (*LIMITS, "--report", "best")


@pytest.mark.parametrize(
    ("limits", "written", "ending", "batch_size", "candidate_filter", "rounds"),
    [
        (LIMITS, (), "bam", 25, "auto", 1),
        (LIMITS, ("--read-group", r"@RG\tID:1\tSM:s"), "bam", 8, "histogram", 1),
        (LIMITS, (), "bam", 1000, "off", 1),
        ((*LIMITS, "--report", "best"), (), "bam", 16, "both", 2),
        (("--edits", "10%", "--report", "strata:1"), (), "tsv", 16, "histogram", 2),
        ((*LIMITS, "--gaps", "1", "--seed-mismatches", "1"), ("--max-places", "2"), "tsv.gz", 30,
         "kmers", 1),
        ((*LIMITS, "--gaps", "0"), ("--max-places", "1"), "paf", 30, "both", 1),
        (("--edits", "1", "--report", "best"), (), "paf.gz", 30, "histogram", 1),
        (LIMITS, ("--extension", "local"), "bam", 25, "both", 1),
        ((*LIMITS, "--report", "best"), ("--extension", "semiglobal", "-A", "2", "-B", "3"), "tsv",
         16, "kmers", 2),
        (LIMITS, ("--extension", "local", "--gap-open", "0"), "paf", 30, "auto", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ends", [1, 2])
def test_the_chain_writes_what_one_program_does(
    folder, tmp_path, limits, written, ending, batch_size, candidate_filter, rounds, ends
):
    reads = ("-1", folder / "r.fq")
    if ends == 2:
        reads = ("-1", folder / "p1.fq", "-2", folder / "p2.fq")
    given = reads, limits, written, ending
    expected = contents(in_one(folder, tmp_path / "one", *given, candidate_filter))
    made = contents(chain(folder, tmp_path / "c", *given, batch_size, candidate_filter, rounds))
    assert made == expected
    counts = json.loads(made["s.stats.json"])
    assert counts["reads"] == N_READS * ends
    assert sum(map(sum, counts["reads_by_loci"])) == counts["aligned"] + counts["over"]
    assert counts["loci"] or counts["loci_over"]


@pytest.mark.parametrize(
    ("backend", "has_gpu", "size"),
    [("cpu", True, 1_000_000), ("cuda", False, 5_000_000), ("auto", True, 5_000_000),
     ("auto", False, 1_000_000)],
)  # fmt: skip
def test_batches_for_a_gpu_are_larger(monkeypatch, backend, has_gpu, size):
    monkeypatch.setattr(batch_reads, "may_have_gpu", lambda: has_gpu)
    assert batch_reads.batch_size_of(backend) == size


@pytest.mark.parametrize("sa_rate", [1, 3, 16])
def test_an_index_that_is_sampled_anew_between_two_steps(folder, tmp_path, sa_rate):
    """The rule resample_index may replace the index while a batch is searched."""
    reads = ("-1", folder / "r.fq")
    chain(folder, tmp_path / "c", reads, LIMITS, (), "tsv", 1000)
    contigs = [contig.encode() for contig in (folder / "contigs.txt").read_text().split()]
    save_index(index_of(contigs, sa_rate=sa_rate), tmp_path / "i")
    index, batch = ("--index", tmp_path / "i"), ("--reads", tmp_path / "c/b/0.reads")
    seeds = ("--seeds", tmp_path / "c/0.0.seeds", "-o", tmp_path / "hits")
    program("locate_seeds", *index, *seeds, folder=tmp_path)
    assert (tmp_path / "hits").read_bytes() == (tmp_path / "c/0.0.hits").read_bytes()
    some = ("--candidates", tmp_path / "hits", "-o", tmp_path / "loci")
    program("extend_candidates", *index, *batch, *some, folder=tmp_path)
    written = ("--loci", tmp_path / "loci", "-o", tmp_path / "o.tsv")
    program("write_alignments", *index, *batch, *written, folder=tmp_path)
    assert (tmp_path / "o.tsv").read_bytes() == (tmp_path / "c/0.tsv").read_bytes()


@pytest.fixture(scope="module")
def pairs(folder):
    """Make pairs with inserts of about 160 bases, some in repeats, and some far apart."""
    rng = random.Random(8)
    contigs = (folder / "contigs.txt").read_text().split()
    turned = str.maketrans("ACGTN", "TGCAN")
    with open(folder / "x1.fq", "w") as one, open(folder / "x2.fq", "w") as two:
        for number in range(300):
            contig = contigs[0] if number % 3 else contigs[1][:400]
            size = round(rng.gauss(160, 8)) if number % 10 else 350
            at = rng.randrange(len(contig) - size)
            ends = contig[at : at + 50], contig[at + size - 50 : at + size]
            for file, read in ((one, ends[0]), (two, ends[1].translate(turned)[::-1])):
                spot = rng.randrange(50)
                read = read[:spot] + rng.choice("ACGT") + read[spot + 1 :]
                file.write(f"@q{number}\n{read}\n+\n{'I' * 50}\n")
    return ("-1", folder / "x1.fq", "-2", folder / "x2.fq")


@pytest.mark.parametrize("batch_size", [90, 1000])
@pytest.mark.parametrize(
    ("report", "written", "ending"),
    [
        ("all", (), "bam"),
        ("best", (), "bam"),
        ("strata:1", ("--max-places", "2"), "tsv"),
        ("best", ("--insert-size", "160,8", "--orientation", "FR"), "paf"),
        ("all", ("--extension", "local"), "tsv"),
    ],
)
def test_proper_pairs(folder, pairs, tmp_path, report, written, ending, batch_size):
    report = ("--report", report)
    made = chain(
        folder, tmp_path / "many", pairs, LIMITS, (*written, *report), ending, batch_size,
        with_estimate="--insert-size" not in written,
    )  # fmt: skip
    expected = in_one(
        folder, tmp_path / "one", pairs, (*LIMITS, *report), written, ending, unpaired=False
    )
    assert contents(made) == contents(expected)
    assert json.loads((made / "s.stats.json").read_text())["pairs"] > 200


@pytest.mark.parametrize(
    ("searched", "written", "message"),
    [
        ((), ("--report", "best"), "--orientation and --report require --insert-size"),
        ((), ("--orientation", "FR"), "--orientation and --report require --insert-size"),
        ((), ("--insert-size", "9,1", "--estimated-insert-size", "s"),
         "--estimated-insert-size cannot be combined with --insert-size or --orientation"),
        ((), ("--orientation", "FR", "--estimated-insert-size", "s"),
         "--estimated-insert-size cannot be combined with --insert-size or --orientation"),
        (("--report", "best"), ("--insert-size", "160,8"), "use bwarp seed-reads --report all"),
    ],
)  # fmt: skip
def test_reads_without_proper_pairs(folder, pairs, tmp_path, searched, written, message):
    chain(folder, tmp_path / "w", pairs, (*LIMITS, *searched), (), "tsv", 1000, "auto", 2)
    files = ("--reads", tmp_path / "w/b/0.reads", "--loci", tmp_path / "w/0.0.loci")
    out = ("-o", tmp_path / "o.tsv", *written)
    done = run_here("write_alignments", "--index", folder / "i", *files, *out, folder=tmp_path)
    assert done.rc == 2
    assert message in done.said
    assert not (tmp_path / "o.tsv").exists()


def test_tables_of_pairs_and_single_reads_are_merged(folder, pairs, tmp_path):
    chain(folder, tmp_path / "v", ("-1", folder / "r.fq"), LIMITS, (), "tsv", 1000)
    chain(folder, tmp_path / "w", pairs, LIMITS, (), "tsv", 1000, with_estimate=True)
    program(
        "merge_loci", tmp_path / "v/0.tsv", tmp_path / "w/0.tsv", "-o", tmp_path / "o.tsv",
        folder=tmp_path,
    )  # fmt: skip
    single, both = ((tmp_path / name).read_text().splitlines() for name in ("v/0.tsv", "w/0.tsv"))
    merged = (tmp_path / "o.tsv").read_text().splitlines()
    assert merged == [both[0], *(f"{line}\t0" for line in single[1:]), *both[1:]]


def test_alignments_by_scores_and_by_edits_are_not_merged(folder, tmp_path):
    reads = ("-1", folder / "r.fq")
    chain(folder, tmp_path / "v", reads, LIMITS, (), "tsv", 1000)
    chain(folder, tmp_path / "w", reads, LIMITS, ("--extension", "local"), "tsv", 1000)
    both = (tmp_path / "v/0.tsv", tmp_path / "w/0.tsv")
    done = run_here("merge_loci", *both, "-o", tmp_path / "o.tsv", folder=tmp_path)
    assert (done.rc, (tmp_path / "o.tsv").exists()) == (1, False)
    assert done.last_line == (
        f"merge_loci.py: error: {both[0]}: written with a different --extension than other "
        "batches: write all with the same one"
    )


def test_single_reads_do_not_pair(folder, tmp_path):
    chain(folder, tmp_path / "w", ("-1", folder / "r.fq"), LIMITS, (), "tsv", 1000)
    files = ("--reads", tmp_path / "w/b/0.reads", "--loci", tmp_path / "w/0.0.loci")
    out = ("-o", tmp_path / "o.tsv", "--insert-size", "160,8")
    done = run_here("write_alignments", "--index", folder / "i", *files, *out, folder=tmp_path)
    assert done.rc == 2
    assert "no pairs: omit --insert-size and --estimated-insert-size" in done.said


def test_the_estimate_is_of_the_first_pairs_alone(folder, pairs, tmp_path, monkeypatch):
    chain(folder, tmp_path / "w", pairs, LIMITS, (), "tsv", 100)

    def estimate(n_batches, *more):
        reads = [tmp_path / f"w/b/{number}.reads" for number in range(n_batches)]
        loci = [tmp_path / f"w/{number}.0.loci" for number in range(n_batches)]
        files = ("--reads", *reads, "--loci", *loci, "-o", tmp_path / "size.json")
        files = ("--index", folder / "i", *files, *more)
        program("estimate_allmap_insert_size", *files, folder=tmp_path)
        return json.loads((tmp_path / "size.json").read_text())

    of_all = estimate(6)
    assert of_all["orientation"] == "FR"
    assert abs(of_all["mean"] - 160) < 8
    assert 100 < of_all["lowest"] < 160 < of_all["highest"] < 220
    monkeypatch.setattr("bwarp.mapping.first_pairs.FIRST_PAIRS", 75)
    of_first = estimate(6)
    assert of_first == estimate(2) != of_all
    assert estimate(1) != of_first
    assert estimate(6, "--orientation", "RF") == {
        "mean": 0.0, "standard_deviation": 0.0, "lowest": 0, "highest": 0, "orientation": "RF",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reads", "limits", "files", "rc", "message"),
    [
        ("pairs", LIMITS, ("--reads", "b/0.reads", "b/1.reads", "--loci", "0.0.loci"), 2,
         "--reads has 2 files but --loci has 1: give one file of loci per batch"),
        ("pairs", LIMITS, ("--reads", "b/1.reads", "--loci", "0.0.loci"), 1,
         "0.0.loci: these loci are not from the reads in b/1.reads: give the file of reads that "
         "was searched"),
        ("pairs", BEST, ("--reads", "b/0.reads", "--loci", "0.0.loci"), 2,
         "--loci 0.0.loci: proper pairs require all loci of their ends: use bwarp seed-reads "
         "--report all"),
        ("single", LIMITS, ("--reads", "b/0.reads", "--loci", "0.0.loci"), 2,
         "--reads b/0.reads: no pairs: give batches of pairs"),
    ],
)  # fmt: skip
def test_reads_without_an_insert_size_estimate(
    folder, pairs, tmp_path, monkeypatch, reads, limits, files, rc, message
):
    reads = pairs if reads == "pairs" else ("-1", folder / "r.fq")
    chain(folder, tmp_path / "w", reads, limits, (), "tsv", 400, rounds=1 + (limits == BEST))
    monkeypatch.chdir(tmp_path / "w")
    given = ("--index", folder / "i", *files, "-o", tmp_path / "o.json")
    done = run_here("estimate_allmap_insert_size", *given, folder=tmp_path)
    assert done.rc == rc
    assert done.last_line == f"estimate_allmap_insert_size.py: error: {message}"
    assert not (tmp_path / "o.json").exists()


GOOD = {"mean": 160.5, "standard_deviation": 8.0, "lowest": 100, "highest": 200,
        "orientation": "FR"}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "{}", "[]", "1", "\xff", '{"mean": 1.0}',
        json.dumps(GOOD | {"orientation": "FRF"}),
        json.dumps(GOOD | {"mean": "160"}),
        json.dumps(GOOD | {"mean": float("nan")}),
        json.dumps(GOOD | {"lowest": 201}),
        json.dumps(GOOD | {"highest": 1 << 40}),
        json.dumps(GOOD | {"highest": 200.5}),
        json.dumps(GOOD | {"standard_deviation": 0.0}),
        json.dumps(GOOD | {"more": 1}),
    ],
)  # fmt: skip
def test_a_file_that_is_no_insert_size_is_refused(steps, tmp_path, text):
    (tmp_path / "size.json").write_text(text, "latin-1")
    files = ("--reads", steps / "b/0.reads", "--loci", steps / "0.0.loci")
    out = ("-o", tmp_path / "o.tsv", "--estimated-insert-size", tmp_path / "size.json")
    done = run_here("write_alignments", "--index", steps / "i", *files, *out, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["size.json"])
    assert done.last_line == (
        f"write_alignments.py: error: {tmp_path}/size.json: not an insert size of bwarp "
        "map-insert-size or bwarp allmap-insert-size: make it again"
    )


def test_no_reads_at_all(folder, tmp_path):
    (tmp_path / "none.fq").write_text("")
    given = ("-1", tmp_path / "none.fq"), LIMITS, (), "bam"
    expected = contents(in_one(folder, tmp_path / "one", *given))
    assert contents(chain(folder, tmp_path / "c", *given, 10)) == expected


def test_no_read_is_long_enough(folder, tmp_path):
    (tmp_path / "short.fq").write_text("@a\nACG\n+\nIII\n" * 5)
    given = ("-1", tmp_path / "short.fq"), (*LIMITS, "--report", "best"), (), "tsv"
    expected = contents(in_one(folder, tmp_path / "one", *given))
    assert contents(chain(folder, tmp_path / "c", *given, 2, "auto", 2)) == expected
    assert expected["s.skipped.tsv"].count(b"\n") == 6


def test_a_few_hits_per_frame(folder, tmp_path, monkeypatch):
    given = ("-1", folder / "r.fq"), LIMITS, (), "bam"
    expected = contents(in_one(folder, tmp_path / "one", *given))
    monkeypatch.setattr("bwarp.allmap.find_cpu._HITS_AT_ONCE", 7)
    assert contents(chain(folder, tmp_path / "c", *given, 25)) == expected


def test_a_second_round_is_needed(folder, tmp_path):
    given = ("-1", folder / "r.fq"), BEST, (), "tsv"
    chain(folder, tmp_path / "c", *given, 1000, "auto", 2)
    loci = tmp_path / "c/0.0.loci"
    out = ("--reads", tmp_path / "c/b/0.reads", "--loci", loci, "-o", tmp_path / "o.bam")
    done = run_here("write_alignments", "--index", folder / "i", *out, folder=tmp_path)
    assert (done.rc, done.left) == (2, ["c"])
    assert done.last_line == (
        f"write_alignments.py: error: --loci {loci}: reads remain for a second round: search them "
        "with bwarp seed-reads --after, and give the loci of both rounds"
    )


@pytest.fixture(scope="module")
def steps(folder, tmp_path_factory):
    """Return the files of a chain, and a batch of other reads."""
    work = tmp_path_factory.mktemp("steps")
    chain(folder, work / "c", ("-1", folder / "r.fq"), LIMITS, (), "bam", 1000)
    program("batch_reads", "-1", folder / "p1.fq", "-o", work / "c/other", folder=work)
    save_index(index_of([b"ACGTTGCA" * 9]), work / "c/index")
    shutil.copytree(folder / "i", work / "c/i")
    return work / "c"


SEEDS = ("--reads", "b/0.reads", "--edits", "4")


@pytest.mark.parametrize(
    ("name", "arguments", "rc", "message"),
    [
        ("seed_reads", ("--index", "i", "--reads", "0.0.seeds", "--edits", "4"), 1,
         "0.0.seeds: not a file of reads: make one with bwarp batch-reads"),
        ("seed_reads", ("--index", "i", *SEEDS, "--after", "0.0.loci", "--report", "best"), 2,
         "--after 0.0.loci: the first round was searched with other limits: use the same "
         "--edits, --gaps, --report and --seed-mismatches"),
        ("seed_reads", ("--index", "i", "--reads", "other/0.reads", "--edits", "4", "--after",
                        "0.0.loci"), 1,
         "0.0.loci: these loci are not from the reads in other/0.reads: give the file of reads "
         "that was searched"),
        ("locate_seeds", ("--index", "i", "--seeds", "0.0.hits"), 1,
         "0.0.hits: not a file of seeds: make one with bwarp seed-reads"),
        ("locate_seeds", ("--index", "index", "--seeds", "0.0.seeds"), 1,
         "0.0.seeds: these seeds were found with an index other than index: use the same index, "
         "or find them again with bwarp seed-reads"),
        ("extend_candidates", ("--index", "i", "--reads", "b/0.reads", "--candidates",
                               "0.0.seeds"), 1,
         "0.0.seeds: not a file of candidates or hits: make one with "
         "bwarp filter-candidates"),
        ("filter_candidates", ("--index", "i", "--reads", "other/0.reads", "--hits",
                               "0.0.hits"), 1,
         "0.0.hits: these hits are not from the reads in other/0.reads: give the file of reads "
         "that was searched"),
    ],
)  # fmt: skip
def test_files_of_different_runs_are_refused(
    steps, monkeypatch, tmp_path, name, arguments, rc, message
):
    monkeypatch.chdir(steps)
    done = run_here(name, *arguments, "-o", tmp_path / "o", folder=tmp_path)
    assert (done.rc, done.left) == (rc, [])
    assert done.last_line == f"{name}.py: error: {message}"


def test_rounds_of_two_searches_are_refused(folder, steps, tmp_path):
    limits = ("--edits", "2")
    other = chain(folder, tmp_path / "c", ("-1", folder / "r.fq"), limits, (), "bam", 1000).parent
    loci = (steps / "0.0.loci", other / "0.0.loci")
    out = ("--reads", steps / "b/0.reads", "--loci", *loci, "-o", tmp_path / "o.bam")
    done = run_here("write_alignments", "--index", folder / "i", *out, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["c"])
    assert done.last_line == (
        f"write_alignments.py: error: {loci[1]}: searched or aligned with other options than "
        f"{loci[0]}: give the rounds of one search"
    )


def test_rounds_aligned_with_other_scores_are_refused(folder, tmp_path):
    reads, files = ("-1", folder / "r.fq"), []
    for name, written in (("v", ()), ("w", ("--extension", "local"))):
        chain(folder, tmp_path / name, reads, BEST, written, "tsv", 1000, "auto", 2)
        files.append(tmp_path / name / f"0.{len(files)}.loci")
    out = ("--reads", tmp_path / "v/b/0.reads", "--loci", *files, "-o", tmp_path / "o.bam")
    done = run_here("write_alignments", "--index", folder / "i", *out, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["v", "w"])
    assert done.last_line == (
        f"write_alignments.py: error: {files[1]}: searched or aligned with other options than "
        f"{files[0]}: give the rounds of one search"
    )


def extended(folder, work, *more):
    """Align reads again in the folder of a chain; return the flags for these loci."""
    batch = ("--reads", work / "b/0.reads")
    some = ("--candidates", work / "0.0.candidates", "-o", work / "few.loci", *more)
    program("extend_candidates", "--index", folder / "i", *batch, *some, folder=work)
    return (*batch, "--loci", work / "few.loci")


@pytest.mark.parametrize("most", [1, 2, 5])
def test_reads_with_many_loci_need_no_alignment(folder, tmp_path, most):
    work = tmp_path / "c"
    chain(folder, work, ("-1", folder / "r.fq"), LIMITS, (), "tsv", 1000)
    loci = extended(folder, work, "--max-places", most)
    (tmp_path / "few").mkdir()
    outputs = []
    for name, files in (("few", loci), ("all", (*loci[:3], work / "0.0.loci"))):
        out = ("-o", tmp_path / f"{name}.tsv", "--max-places", most)
        program("write_alignments", "--index", folder / "i", *files, *out, folder=tmp_path)
        outputs.append((tmp_path / f"{name}.tsv").read_bytes())
    assert outputs[0] == outputs[1]
    aligned = []
    for path in (loci[-1], work / "0.0.loci"):
        with open_chunk_file(path, "loci") as reader:
            sizes = [np.diff(arrays["offsets"]) for kind, arrays in reader if kind == "loci"]
        aligned.append((np.concatenate(sizes) > 0).sum())
    assert aligned[0] == outputs[0].count(b"\n") - 1 < aligned[1]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ((), "reads with more loci than 2 are not aligned: use --max-places from 1 to 2"),
        (("--max-places", "3"),
         "reads with more loci than 2 are not aligned: use --max-places from 1 to 2"),
        (("--max-places", "1", "--insert-size", "160,8"),
         "proper pairs require the alignments of all loci: use bwarp extend-candidates without "
         "--max-places"),
    ],
)  # fmt: skip
def test_loci_without_alignments_are_not_written(folder, pairs, tmp_path, written, message):
    work = tmp_path / "c"
    chain(folder, work, pairs, LIMITS, (), "tsv", 1000)
    loci = extended(folder, work, "--max-places", 2)
    out = (*loci, "-o", tmp_path / "o.tsv", *written)
    done = run_here("write_alignments", "--index", folder / "i", *out, folder=tmp_path)
    assert (done.rc, done.left) == (2, ["c"])
    assert done.last_line == f"write_alignments.py: error: --loci {loci[-1]}: {message}"


def test_reads_of_a_second_round_are_aligned_once(folder, tmp_path):
    work = tmp_path / "c"
    chain(folder, work, ("-1", folder / "r.fq"), BEST, (), "tsv", 1000, "auto", 2)
    aligned, searched = [], []
    for number in (0, 1):
        with open_chunk_file(work / f"0.{number}.loci", "loci") as reader:
            frames = list(reader)
        searched.append(set(frames[0][1]["reads"].tolist()))
        aligned.append(set())
        for _, arrays in frames[1:]:
            has_some = np.diff(arrays["offsets"]) > 0
            aligned[-1] |= set((arrays["rows"][has_some, 0] >> 1).tolist())
    assert aligned[0]
    assert aligned[1]
    assert not aligned[0] & searched[1]


@pytest.mark.parametrize(
    ("arguments", "rc", "message"),
    [
        (("0.bam", "0.tsv"), 2, "0.tsv: all files must have the format of the output, bam"),
        (("-",), 2, "-: batches are merged from files to a file: give the name of a file"),
        (("1.bam",), 1, "1.stats.json: not statistics of a search for loci: make them again"),
    ],
)
def test_files_that_cannot_be_merged(steps, monkeypatch, tmp_path, arguments, rc, message):
    monkeypatch.chdir(steps)
    for ending in ("bam", "over.tsv", "skipped.tsv"):
        shutil.copy(f"0.{ending}", f"1.{ending}")
    (steps / "1.stats.json").write_text('{"reads": 1}')
    (steps / "0.tsv").touch()
    done = run_here("merge_loci", *arguments, "-o", tmp_path / "o.bam", folder=tmp_path)
    assert (done.rc, done.left) == (rc, [])
    assert done.last_line == f"merge_loci.py: error: {message}"


def test_a_bam_for_merging_is_uncompressed_and_has_no_index(folder, steps, monkeypatch, tmp_path):
    monkeypatch.chdir(steps)
    given = ("--index", folder / "i", "--reads", "b/0.reads", "--loci", "0.0.loci")
    program("write_alignments", *given, "-o", "u.bam", "--uncompressed", folder=tmp_path)
    assert not (steps / "u.bam.bai").exists()
    content = (steps / "u.bam").read_bytes()
    assert gzip.decompress(content) == gzip.decompress((steps / "0.bam").read_bytes())
    assert len(content) > len(gzip.decompress(content))
    out = ("-o", tmp_path / "o.tsv", "--uncompressed")
    done = run_here("write_alignments", *given, *out, folder=tmp_path)
    assert (done.rc, done.left) == (2, [])
    assert done.last_line.endswith("o.tsv: --uncompressed requires BAM output")


def test_a_table_of_another_kind_is_not_merged(steps, monkeypatch, tmp_path):
    monkeypatch.chdir(steps)
    for name in ("0.bam", "0.skipped.tsv", "0.stats.json"):
        shutil.copy(name, tmp_path)
    (tmp_path / "0.over.tsv").write_text("other\n")
    done = run_here("merge_loci", tmp_path / "0.bam", "-o", tmp_path / "o.bam", folder=tmp_path)
    assert done.rc == 1
    assert "o.bam" not in done.left
    assert done.last_line == (
        f"merge_loci.py: error: {tmp_path}/0.over.tsv: not a table of bwarp write-alignments: "
        "write it again"
    )


def test_a_folder_with_other_files_is_not_used_for_batches(folder, tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b/mine.txt").write_text("mine")
    done = run_here("batch_reads", "-1", folder / "r.fq", "-o", tmp_path / "b", folder=tmp_path)
    assert done.rc == 2
    assert (tmp_path / "b/mine.txt").read_text() == "mine"


def test_batches_are_made_again(folder, tmp_path):
    for size, n_batches in ((10, 6), (60, 1), (20, 3)):
        made = ("-o", tmp_path / "b", "--batch-size", size)
        said = program("batch_reads", "-1", folder / "r.fq", *made, folder=tmp_path)
        assert said == f"{N_READS} reads: {counted(n_batches, 'batch')}"
        names = sorted(path.name for path in (tmp_path / "b").iterdir())
        assert names == [f"{number}.reads" for number in range(n_batches)]


@pytest.mark.parametrize("backend", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_steps_at_once_between_pipes(folder, tmp_path, checkout, backend):
    """The steps of a batch share a GPU: each starts before the one before it has ended."""
    reads = ("-1", folder / "r.fq")
    expected = contents(in_one(folder, tmp_path / "one", reads, LIMITS, (), "tsv"))
    program("batch_reads", *reads, "-o", tmp_path / "b", folder=tmp_path)
    kinds = ("seeds", "hits", "candidates", "loci")
    seeds, hits, candidates, loci = (tmp_path / f"0.{kind}" for kind in kinds)
    for path in (seeds, hits, candidates, loci):
        os.mkfifo(path)
    made = tmp_path / "made"
    made.mkdir()
    output, stats = made / "s.tsv", made / "s.stats.json"
    batch = ("--reads", tmp_path / "b/0.reads")
    steps = {
        "seed_reads": (*batch, *LIMITS, "-o", seeds),
        "locate_seeds": ("--seeds", seeds, "-o", hits),
        "filter_candidates": (*batch, "--hits", hits, "-o", candidates),
        "extend_candidates": (*batch, "--candidates", candidates, "-o", loci),
        "write_alignments": (*batch, "--loci", loci, "-o", output, "--stats", stats),
    }
    on_engine = ("--index", folder / "i", "--threads", "2", "--backend", backend)
    paths = [str(checkout), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    environment.pop("BWARP_GPU", None)
    running = [
        subprocess.Popen(
            [sys.executable, checkout / f"scripts/{step}.py", *arguments, *on_engine],
            env=environment, stderr=subprocess.PIPE, text=True,
        )
        for step, arguments in steps.items()
    ]  # fmt: skip
    said = [step.communicate(timeout=300)[1] for step in running]
    assert [step.returncode for step in running] == [0] * len(steps), said
    assert contents(made) == expected
