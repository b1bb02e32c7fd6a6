"""The target `allmap`: a chain of jobs writes the same files as one program."""

import contextlib
import json
import os
import re
import shutil
import time
from importlib.util import find_spec
from pathlib import Path

import pysam
import pytest

from bwarp_pipes import SHARES, cores_in_pipes, threads_in_pipes
from bwarp_sheet import FILES_OF_SAMPLES
from tests.helpers.programs.programs_here import run_here


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy with reads of two samples, one with two units, some of them pairs."""
    copy = make_copy(forks=True)
    contig = (copy / "small.fa").read_text().split("\n")[1]
    for unit, shift in (("a", 0), ("b1", 500), ("b2", 700), ("c", 900)):
        with open(copy / f"{unit}.fq", "w") as file:
            for number in range(23):
                at = shift + 40 * number
                read = contig[at : at + 30] + "A" + contig[at + 31 : at + 60]
                file.write(f"@r{number}\n{read}\n+\n{'I' * 60}\n")
    (copy / "units.tsv").write_text(
        "sample\tunit\tfq1\tfq2\n"
        "s.1\ta\ta.fq\t\n"
        "s.1\tb\tb1.fq\tb2.fq\n"
        "s\t1.a\tc.fq\t\n"
    )  # fmt: skip
    return copy


def in_one(copy, reads, group, ending, *limits):
    """Return the files that bwarp allmap writes for a unit, by their endings."""
    folder = copy / "one"
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    group = ["-R", rf"@RG\tID:{group}\tSM:{group[0]}\tPL:ILLUMINA"] if ending == "bam" else []
    index = ("--index", copy / "results/index/small")
    out = ("-o", folder / f"o.{ending}", "--stats", folder / "o.stats.json")
    done = run_here("find_alignments", *index, *reads, *group, *out, *limits, folder=folder)
    assert done.rc == 0, done.said
    return {path.name.partition(".")[2]: path.read_bytes() for path in folder.iterdir()}


def written(copy, sample):
    found = {}
    for path in (copy / "results/allmap").glob(f"{sample}.*"):
        if path.name.removeprefix(f"{sample}.")[0].isalpha() and ".steps." not in path.name:
            found[path.name.removeprefix(f"{sample}.")] = path.read_bytes()
    return found


def settings(copy, text):
    (copy / "mine.yaml").write_text(
        f"reference: small.fa\nsamples: units.tsv\nbackend: cpu\nallmap: {{{text}}}\n"
    )
    return ("--configfile", "mine.yaml")


def without_batches(copy):
    """Remove batches, because those of another size would be kept."""
    shutil.rmtree(copy / "results/allmap", ignore_errors=True)


@pytest.mark.parametrize("batch_size", [12, 100])
def test_the_bytes_are_those_of_one_program(copy, batch_size):
    own = settings(copy, f"edits: 3, gaps: 1, batch_size: {batch_size}")
    without_batches(copy)
    copy.snakemake("allmap", *own)
    expected = in_one(copy, ("-1", copy / "c.fq"), "s.1.a", "bam", "--edits", 3, "--gaps", 1)
    assert written(copy, "s") == expected
    assert json.loads(expected["stats.json"])["aligned"] == 23
    steps = [
        row.split("\t") for row in (copy / "results/allmap/s.steps.tsv").read_text().splitlines()
    ]
    parts = str(json.loads(expected["stats.json"])["parts"])
    assert [steps[1][4], steps[3][4]] == ["23", parts]
    assert {row[1] for row in steps[1:] if row[0]} == {"cpu"}
    assert all(float(row[6]) > 0 for row in steps[1:] if row[0])
    assert "From reads to loci" in (copy / "results/allmap/s.steps.html").read_text()
    # With two units, the records and counts of both, and two read groups.
    counts = json.loads((copy / "results/allmap/s.1.stats.json").read_text())
    assert counts["reads"] == 69
    with pysam.AlignmentFile(copy / "results/allmap/s.1.bam") as file:
        header = file.header.to_dict()
        assert file.check_index()
        assert sum(not record.is_secondary for record in file) == 69
    assert [group["ID"] for group in header["RG"]] == ["s.1.a", "s.1.b"]
    assert len(header["CO"]) == 1
    assert header["CO"][0].startswith("bwarp allmap: reads=69 ")
    # Unit a has single reads, b pairs.
    assert [" -2 R2.fq " in program["CL"] for program in header["PG"]] == [False, True]
    assert not (copy / "results/allmap/units/s").exists()
    # Units never share a log, whatever their names.
    logs = copy / "logs/batch_reads"
    made = {str(path.relative_to(logs)) for path in logs.rglob("*.log")}
    assert made == {"s/1.a.log", "s.1/a.log", "s.1/b.log"}
    assert copy.planned("allmap", *own) == []
    assert copy.planned("allmap", *settings(copy, "edits: 3, gaps: 1, batch_size: 50")) == []


#: The rules that use a GPU; without one, the CPU takes its place.
ON_GPU = ("index_reference", "seed_reads", "filter_candidates", "extend_candidates")
WITHOUT_GPU = ("--set-resources", *(f"{rule}:backend=cpu" for rule in ON_GPU))
IN_PIPES = ("--cores", 8, *WITHOUT_GPU)


def settings_with_gpu(copy, text, sheet="units.tsv"):
    own = settings(copy, text)
    text = (copy / "mine.yaml").read_text().replace("backend: cpu", "backend: cuda")
    (copy / "mine.yaml").write_text(text.replace("units.tsv", sheet))
    return own


def sizes_of_groups(said):
    """Return the number of jobs in each group that Snakemake plans or runs."""
    groups = re.split(r"Group job ", said)[1:]
    rule = re.compile(r"^    (?:local)?rule \w+:$", re.MULTILINE)
    return [len(rule.findall(group)) for group in groups]


@pytest.mark.parametrize(
    ("limits", "options", "in_pipes"),
    [
        ("filter: histogram", ["--filter", "histogram"], [5]),
        ('filter: "off", report: best', ["--filter", "off", "--report", "best"], [3, 3]),
    ],
)
def test_steps_connected_by_pipes(copy, limits, options, in_pipes):
    """With one GPU, the steps of a batch run at once; the last one if no other needs its loci."""
    without_batches(copy)
    (copy / "single.tsv").write_text("sample\tunit\tfq1\ns\t1.a\tc.fq\n")
    own = settings_with_gpu(copy, f"edits: 3, gaps: 1, batch_size: 100, {limits}", "single.tsv")
    said = copy.snakemake("results/allmap/s.bam", *own, *IN_PIPES)
    assert sizes_of_groups(said) == in_pipes
    limits = ("--edits", 3, "--gaps", 1, *options)
    assert written(copy, "s") == in_one(copy, ("-1", copy / "c.fq"), "s.1.a", "bam", *limits)
    assert not (copy / "results/allmap/units/s").exists()
    assert copy.planned("results/allmap/s.bam", *own, *IN_PIPES) == []


def running_in(folder):
    """Return the command lines of all programs of bwarp that run in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(process / "cwd")) == folder:
                found.append((process / "cmdline").read_bytes())
    return [words for words in found if b"bwarp" in words]


def test_a_failing_step_ends_the_others_in_pipes(copy):
    """It fails before it has opened its pipe, which the next step waits for."""
    without_batches(copy)
    own = settings_with_gpu(copy, "edits: 3, batch_size: 100")
    copy.snakemake("results/allmap/batches/s/1.a", *own, *IN_PIPES)
    # Other units may have pairs, whose loci two steps need.
    assert sizes_of_groups(copy.snakemake("-n", "results/allmap/s.bam", *own, *IN_PIPES)) == [4]
    batch = copy / "results/allmap/batches/s/1.a/0.reads"
    whole = batch.read_bytes()
    batch.write_bytes(whole[:20])
    try:
        copy.snakemake("results/allmap/s.bam", *own, *IN_PIPES, rc=1)
    finally:
        batch.write_bytes(whole)
    assert not (copy / "results/allmap/s.bam").exists()
    log = (copy / "logs/seed_reads/s/1.a/0.1.log").read_text()
    assert log.splitlines()[-1].endswith("the file is damaged or truncated: make it again")
    end = time.monotonic() + 60
    while running_in(copy.folder) and time.monotonic() < end:
        time.sleep(0.1)
    assert not running_in(copy.folder)
    copy.snakemake("results/allmap/s.bam", *own, *IN_PIPES)


def test_shares_of_cores_fit():
    for cores in range(8, 200):
        used = cores_in_pipes(cores)
        assert used <= cores
        for steps in (list(SHARES), list(SHARES)[:-1]):
            shares = [threads_in_pipes(step, steps, used) for step in steps]
            assert used // 2 < sum(shares) <= used
            assert min(shares) > 0
    assert cores_in_pipes(7) == cores_in_pipes(None) == 0


@pytest.mark.parametrize("more", [("--cores", 7), ("--cores", 8, "--resources", "mem_mb=64000")])
def test_steps_run_one_by_one_where_they_do_not_fit_together(copy, more):
    without_batches(copy)
    own = settings_with_gpu(copy, "edits: 3, batch_size: 12")
    copy.snakemake("results/allmap/batches/s/1.a", *own, *more, *WITHOUT_GPU)
    plan = copy.snakemake("-n", "results/allmap/s.bam", *own, *more, *WITHOUT_GPU)
    assert "rule seed_reads:" in plan
    assert "Group job" not in plan


def test_scores_are_those_of_the_configuration(copy):
    without_batches(copy)
    scores = "extension: local, match: 2, mismatch: -3, gap_open: 5, gap_extend: 2"
    own = settings(copy, f"edits: 3, batch_size: 10, format: tsv, {scores}")
    copy.snakemake("results/allmap/s.tsv", *own)
    options = ("--extension", "local", "-A", 2, "-B", 3, "-O", 5, "-E", 2)
    expected = in_one(copy, ("-1", copy / "c.fq"), "s.1.a", "tsv", "--edits", 3, *options)
    assert written(copy, "s")["tsv"] == expected["tsv"]
    assert b"\tscore\tlocus_edits\n" in expected["tsv"]


def test_two_rounds_where_the_best_are_wanted(copy):
    without_batches(copy)
    limits = "edits: 4, report: best, batch_size: 10, format: tsv, filter: histogram"
    own = settings(copy, limits)
    copy.snakemake("results/allmap/s.tsv", *own)
    reads = ("-1", copy / "c.fq")
    options = ("--edits", 4, "--report", "best", "--filter", "histogram")
    expected = in_one(copy, reads, "s.1.a", "tsv", *options)
    made = written(copy, "s")
    for ending in ("tsv", "over.tsv", "skipped.tsv", "stats.json"):
        assert made[ending] == expected[ending]
    ran = {path.name for path in (copy / "logs/seed_reads/s/1.a").glob("0.*.log")}
    assert ran == {"0.1.log", "0.2.log"}


@pytest.mark.parametrize(
    "more", ["", ", insert_size: '300,20', orientation: FR", ", unpaired: true"]
)
def test_pairs(copy, more):
    """Pairs have one round, and proper pairs; the first batches give the insert size."""
    contig = (copy / "small.fa").read_text().split("\n")[1]
    turned = str.maketrans("ACGT", "TGCA")
    for end in (1, 2):
        with open(copy / f"p{end}.fq", "w") as file:
            for number in range(60):
                piece = contig[17 * number :][: 290 + number % 20]
                read = piece[:50] if end == 1 else piece[-50:].translate(turned)[::-1]
                file.write(f"@r{number}\n{read}\n+\n{'I' * 50}\n")
    (copy / "pairs.tsv").write_text("sample\tunit\tfq1\tfq2\np\t1\tp1.fq\tp2.fq\n")
    own = settings(copy, f"edits: 3, report: best, batch_size: 20{more}")
    text = (copy / "mine.yaml").read_text().replace("units.tsv", "pairs.tsv")
    (copy / "mine.yaml").write_text(text)
    copy.snakemake("results/allmap/p.bam", *own)
    options = ["--edits", 3, "--report", "best"]
    if "insert_size" in more:
        options += ["--insert-size", "300,20", "--orientation", "FR"]
    if "unpaired" in more:
        options += ["--unpaired"]
    reads = ("-1", copy / "p1.fq", "-2", copy / "p2.fq")
    assert written(copy, "p") == in_one(copy, reads, "p.1", "bam", *options)
    proper = json.loads((copy / "results/allmap/p.stats.json").read_text())["pairs"]
    assert proper == (0 if "unpaired" in more else 60)


def test_other_limits_need_no_other_batches(copy):
    without_batches(copy)
    own = settings(copy, "edits: 3, gaps: 1, batch_size: 10")
    copy.snakemake("results/allmap/s.bam", *own)
    planned = copy.planned(
        "results/allmap/s.bam", *settings(copy, "edits: 2, gaps: 1, batch_size: 10")
    )
    assert "batch_reads" not in planned
    assert planned.count("seed_reads") == planned.count("write_alignments") == 3


@pytest.mark.parametrize(
    ("sample", "limits", "written"),
    [
        ("s", "edits: 3", True),
        ("s", "edits: 3, report: best", True),
        ("s.1", "edits: 3, insert_size: '300,20', orientation: FR", True),
        ("s.1", "edits: 3", False),
    ],
)
def test_a_batch_is_one_job_on_a_cluster(copy, sample, limits, written):
    """An estimate of the insert size, from several batches, precedes the last step."""
    without_batches(copy)
    own = settings(copy, f"{limits}, batch_size: 12")
    units = {"s": ["s/1.a"], "s.1": ["s.1/a", "s.1/b"]}[sample]
    copy.snakemake(*(f"results/allmap/batches/{unit}" for unit in units), *own)
    of_cluster = ("--workflow-profile", "profiles/slurm", "--executor", "local")
    plan = copy.snakemake("-n", f"results/allmap/{sample}.bam", *own, *of_cluster)
    groups = re.split(r"Group job allmap_batch ", plan)[1:]
    jobs = [re.findall(r"^    rule (\w+):$", group, re.MULTILINE) for group in groups]
    batches = copy / "results/allmap/batches"
    n_batches = len(list(batches.glob(f"{sample}/*/*.reads")))
    assert len(jobs) == n_batches > 1
    steps = ["extend_candidates", "filter_candidates", "locate_seeds", "seed_reads"]
    n_rounds = 2 if "best" in limits else 1
    of_batch = sorted(steps * n_rounds)
    # Batches of single reads have no estimate.
    not_written = 0 if written else len(list(batches.glob(f"{sample}/b/*.reads")))
    assert jobs.count([*of_batch, "write_alignments"]) == n_batches - not_written
    assert jobs.count(of_batch) == not_written
    assert all("runtime=5" in group for group in groups)


@pytest.mark.skipif(
    not find_spec("snakemake_executor_plugin_cluster_generic"), reason="needs cluster-generic"
)
def test_jobs_on_other_machines_write_the_same_bytes(copy):
    """Snakemake starts again there, and does not know that the batches have been made."""
    without_batches(copy)
    own = settings(copy, "edits: 3, batch_size: 100")
    of_cluster = (
        "--executor", "cluster-generic", "--cluster-generic-submit-cmd", "sh", "--jobs", "2",
        "--seconds-between-status-checks", "1",
    )  # fmt: skip
    copy.snakemake("results/allmap/s.bam", *own, *of_cluster)
    reads = ("-1", copy / "c.fq")
    one = in_one(copy, reads, "s.1.a", "bam", "--edits", "3")
    assert written(copy, "s") == one


def test_a_file_of_a_batch_is_requested_before_there_are_batches(copy):
    without_batches(copy)
    own = settings(copy, "edits: 3, batch_size: 12")
    planned = copy.planned("results/allmap/units/s/1.a/0.1.loci", *own)
    assert "seed_reads" in planned or "extend_candidates" in planned


@pytest.mark.parametrize(("batch_size", "threads"), [(12, 3), (100, 6)])
def test_steps_of_several_batches_share_the_cores(copy, batch_size, threads):
    without_batches(copy)
    own = settings(copy, f"edits: 3, batch_size: {batch_size}")
    copy.snakemake("results/allmap/batches/s/1.a", *own)
    plan = copy.snakemake("-n", "results/allmap/s.bam", *own, "--cores", 6)
    found = re.findall(r"rule seed_reads:\n(?:.+\n)*?    threads: ([0-9]+)\n", plan)
    assert set(found) == {str(threads)}


@pytest.mark.parametrize("rates", ["sa_rate: 8", "occ_rate: 128"])
def test_other_rates_sample_the_index_anew(copy, rates):
    """Loci do not depend on p and q, so a finished search is kept."""
    without_batches(copy)
    limits = "edits: 3, gaps: 1, batch_size: 100, format: tsv"
    copy.snakemake("allmap", *settings(copy, limits))
    made = written(copy, "s")
    own = settings(copy, f"{limits}}}\nindex: {{{rates}")
    assert copy.planned("allmap", *own) == ["resample_index"]
    # A search with other limits runs in the meantime, with either index.
    own = settings(copy, f"{limits}, filter: 'off'}}\nindex: {{{rates}")
    copy.snakemake("allmap", *own)
    name, rate = rates.split(": ")
    assert json.loads((copy / "results/index/small/index.json").read_text())[name] == int(rate)
    after = written(copy, "s")
    assert made.pop("stats.json") != after.pop("stats.json")
    assert made == after
    copy.snakemake("index", *settings(copy, limits))


def test_parts_with_mismatches_need_the_reverse(copy):
    mismatches = "edits: 3, gaps: 0, batch_size: 100, seed_mismatches: 1, format: paf"
    copy.snakemake("allmap", *settings(copy, mismatches))
    assert (copy / "results/index/small.with_reverse.txt").exists()
    assert b"cg:Z:60M" in written(copy, "s")["paf"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("allmap: {edits: 2, gaps: 3}\n",
         "  the configuration, allmap.gaps: is greater than edits: write at most 2\n"),
        ("allmap: {edits: 2, gap_open: 3}\n",
         "  the configuration, allmap.gap_open: requires extension: semiglobal or local\n"),
        ("allmap: {edits: 2, extension: local, match: 0}\n",
         "  mine.yaml, line 3, allmap.match: 0 is not valid: write a whole number from 1 to 100\n"),
        ("allmap: {edits: 60%}\n",
         "  mine.yaml, line 3, allmap.edits: '60%' is not valid: write a whole number from 0 to "
         '31, or a percentage in quotes, such as "3%"\n'),
        ("allmap: {edits: 2, filter: off}\n",
         "  mine.yaml, line 3, allmap.filter: false is not valid: write auto, histogram, kmers or "
         "both, or off in quotes\n"),
    ],
)  # fmt: skip
def test_invalid_settings(copy, text, message):
    (copy / "mine.yaml").write_text(f"reference: small.fa\nsamples: units.tsv\n{text}")
    assert message in copy.snakemake("-n", "allmap", "--configfile", "mine.yaml", rc=2)


@pytest.mark.parametrize(
    ("output", "form"),
    [("bam", "bam"), ("cram", "tsv"), ("bam", "tsv.gz"), ("cram", "paf"), ("bam", "paf.gz")],
)
def test_samples_that_are_refused_together(copy, output, form):
    """These are samples for which a file of one would have the name of another's."""
    own = settings(copy, f"edits: 3, format: {form}}}\nmap: {{output: {output}")
    plan = copy.snakemake("-n", "map", "allmap", *own)
    for target in ("map", "allmap"):
        endings = set(re.findall(rf"results/{target}/s\.(?!1\.)([\w.]+)", plan))
        assert endings >= {"stats.json", output if target == "map" else form}
        kinds = {
            one.removesuffix(f".{other}")
            for one in endings
            for other in endings
            if one.endswith(f".{other}")
        }
        assert kinds == ({*FILES_OF_SAMPLES} if form == "tsv" and target == "allmap" else set())


def test_the_example(checkout, make_copy):
    copy = make_copy("example", forks=True)
    copy.snakemake("allmap", "--configfile", "config/examples/allmap.yaml")
    counts = json.loads((copy / "results/allmap/demo.stats.json").read_text())
    shown = f"then has {counts['loci']:,} loci of {counts['aligned']:,} reads"
    assert shown in (checkout / "docs/allmap-chain.md").read_text()
