"""The tables of speed on the pages of single programs."""

from collections.abc import Iterator

from drawing.figures import Lines, machine_of, reference_of
from drawing.tables import Table

__all__ = ["TABLES", "significant", "table"]


def table(heads: list[str], results: str, rows: Iterator[tuple[tuple, list[dict]]]) -> Table:
    """Return a table of rows and their lines."""
    rows = list(rows)
    lines = [line for _, some in rows for line in some]
    return Table(heads, [row for row, _ in rows], lines, results)


def significant(value: float) -> str:
    """Format a number with at least three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def jobs_of(lines: list[dict]) -> dict[tuple, dict[str, dict]]:
    """Group lines of programs that ran in turn by job and reference, and by program."""
    jobs: dict[tuple, dict[str, dict]] = {}
    for line in lines:
        if {"what", "program", "seconds"} <= line.keys():
            jobs.setdefault((line["what"], line["reference"]), {})[line["program"]] = line
    return jobs


def beside(name: str, results: str, peer: str, ours: str = "bwarp"):
    """Return a function that draws the jobs that bwarp and a peer did in turn."""

    def draw(lines: Lines) -> Table:
        def rows():
            for (what, _), job in jobs_of(lines(results)).items():
                if {peer, ours} <= job.keys():
                    mine, theirs = job[ours], job[peer]
                    yield (
                        what, reference_of(job[ours]), f"{theirs['seconds']:.3g} s",
                        f"{mine['seconds']:.3g} s", f"{theirs['seconds'] / mine['seconds']:.1f} x",
                        machine_of(mine),
                    ), [mine, theirs]  # fmt: skip

        versions = {job[peer].get("version") for job in jobs_of(lines(results)).values()
                    if peer in job}  # fmt: skip
        version = max(filter(None, versions), default="")
        heads = [name, "reference", f"{peer} {version}".strip(), "bwarp", "", "machine"]
        return table(heads, results, rows())

    return draw


def seeds_on_gpu(lines: Lines) -> Table:
    """Draw Liu & Schmidt's data sets, with their published times on a Tesla C2050."""

    def rows():
        for line in lines("seeds_gpu.jsonl"):
            for run in (*line["whole_runs_auto"], *line["whole_runs_all_located"]):
                seconds = sorted(run["seconds"])[len(run["seconds"]) // 2]
                ratio = run["times_the_papers_gpu"] or 0
                counted = run["hits"] == 0
                note = ", all counted, none located" if counted else ""
                note = note if run["max_hits"] else ", without a limit"
                yield (
                    f"{run['k']}{note}", run["mismatches"], f"{run['hits'] / 1e6:,.1f} M",
                    f"{seconds * ratio:.3g} s" if ratio else "", f"{seconds:.3f} s",
                    f"{ratio:.0f} x" if ratio and not counted else "",
                    f"{run['search_seconds']:.4f} s",
                ), [line]  # fmt: skip

    heads = ["k", "mismatches", "hits listed", "Liu & Schmidt, Tesla C2050", "bwarp", "",
             "of it the search"]  # fmt: skip
    return table(heads, "seeds_gpu.jsonl", rows())


def matches_on_gpu(lines: Lines) -> Table:
    results = "mems_h200.jsonl"

    def rows():
        kinds: dict[tuple, dict[int, dict]] = {}
        for line in lines(results):
            if "seconds" in line:
                key = line["bases"], line["reads"], line["kind"]
                kinds.setdefault(key, {})[line["strands"]] = line
        for (bases, reads, kind), by_strands in kinds.items():
            times = (
                f"{by_strands[n]['seconds']:.3g} s, {by_strands[n]['matches'] / 1e6:.1f} M matches"
                if n in by_strands else "" for n in (1, 2)
            )  # fmt: skip
            size = f"{reads / 1e6:g} M, {bases / 1e6:,.0f} Mb"
            yield (size, f"`{kind}`", *times), list(by_strands.values())

    return table(["reads, reference", "kind", "one strand", "both strands"], results, rows())


def chunks_on_gpus(lines: Lines) -> Table:
    """Draw a row per index and number of GPUs: matches, k-mers, and whole programs."""
    results = "spread_gpus.jsonl"

    def rows():
        kinds: dict[tuple, list[dict]] = {}
        for line in lines(results):
            if "index" in line:
                kinds.setdefault((line["chunks"], line["index"], line["gpus"]), []).append(line)
        for (chunks, index, gpus), some in kinds.items():
            what = "the whole index" if index == "whole" else f"{chunks} chunks"
            where = f"{gpus} GPU{'s' * (gpus > 1)}" if gpus else "one chunk at a time on 1 GPU"
            seconds = {
                line.get("kind", line.get("set", "program")): line.get("seconds", 0)
                for line in some
            }
            program = next(line["program_s"] for line in some if "program_s" in line)
            cells = (
                f"{significant(1000 * seconds[name])} ms" if name in seconds else ""
                for name in ("mumreference", "maxmatch", "S15", "S20", "S30")
            )
            yield (f"{what}, {where}", *cells, f"{program:.2f} s"), some

    heads = ["index", "`mumreference`", "`maxmatch`", "15-mers", "20-mers, 1 mismatch",
             "30-mers, 2 mismatches", "`bwarp mems`"]  # fmt: skip
    return table(heads, results, rows())


def loci(lines: Lines) -> Table:
    results = "allmap_cpu.jsonl"

    def rows():
        for (what, _), job in jobs_of(lines(results)).items():
            cells = (
                f"{job[name]['seconds']:.2f} s, {job[name]['loci']:,} loci" if name in job else ""
                for name in ("bwarp", "yara", "columba")
            )
            few = f"{job['razers3']['seconds']:.2f} s" if "razers3" in job else ""
            yield (what, *cells, few), list(job.values())

    heads = ["what", "bwarp", "Yara `-y full`", "Columba `-m edit`, to SAM",
             "RazerS 3 `-rr 100`, a fiftieth of the reads"]  # fmt: skip
    return table(heads, results, rows())


def seed_mismatches(lines: Lines) -> Table:
    """Draw a row per kind of read and mismatches within parts: one core, and a GPU."""
    results = "seed_mismatches.jsonl"

    def rows():
        kinds: dict[tuple, dict[str, dict]] = {}
        for line in lines(results):
            key = line["length"], line["edits"], line["gaps"], line["mismatches"]
            kinds.setdefault(key, {})[line["backend"]] = line
        for (length, edits, gaps, mismatches), engines in kinds.items():
            line = next(iter(engines.values()))
            times = (
                f"{significant(engines[name][seconds] / engines[name]['reads'] * 1e6)} µs"
                if name in engines else ""
                for name, seconds in (("cpu", "processor_seconds"), ("cuda", "seconds"))
            )  # fmt: skip
            reads = line["reads"]
            yield (
                f"{length} b", f"{edits}, {gaps}", f"{mismatches}{', auto' * line['chosen']}",
                line["parts"] // (2 * reads), significant(line["located"] / reads),
                significant(line["loci"] / reads), *times,
            ), list(engines.values())  # fmt: skip

    heads = ["reads", "edits, gaps", "mismatches", "parts", "hits per read", "loci per read",
             "one core, per read", "GPU, per read"]  # fmt: skip
    return table(heads, results, rows())


def filters(lines: Lines) -> Table:
    """Draw a row per data set and filter: one core, and a GPU."""
    results = "filters.jsonl"

    def rows():
        kinds: dict[tuple, dict[str, dict]] = {}
        for line in lines(results):
            key = (line["genome"], line["text_bases"], line["length"], line["edits"], line["gaps"])
            kinds.setdefault((*key, line["filter"]), {})[line["backend"]] = line
        for (genome, bases, length, edits, gaps, name), engines in kinds.items():
            line = next(iter(engines.values()))
            times = (times_of_filter(engines[backend]) if backend in engines else ""
                     for backend in ("cpu", "cuda"))  # fmt: skip
            dropped = (
                f"{100 * line[bound] / line['candidates']:.1f} %" if line[bound] else ""
                for bound in ("dropped_by_histogram", "dropped_by_kmers")
            )
            yield (
                f"{genome}, {bases / 1e6:,.0f} Mb", f"{length} b; {edits}, {gaps}", f"`{name}`",
                *dropped, *times,
            ), list(engines.values())  # fmt: skip

    heads = ["genome", "reads; edits, gaps", "`--filter`", "dropped by base counts", "by 4-mers",
             "one core", "GPU"]  # fmt: skip
    return table(heads, results, rows())


def times_of_filter(line: dict) -> str:
    """Return the nanoseconds per candidate of filter, verification, and both."""
    times = (line["filter_seconds"], line["verify_seconds"])
    shown = [significant(1e9 * one / line["candidates"]) for one in (*times, sum(times))]
    return f"{shown[0]} + {shown[1]} = {shown[2]}" if times[0] else shown[2]


def chain(lines: Lines) -> Table:
    """Draw a row per batch size of the chain of allmap, beside the one program."""
    results = "chain.jsonl"

    def rows():
        for line in lines(results):
            of = f"{line['reads'] / 1e6:g} M of {line['length']} b, {line['report']}"
            steps, in_pipes = line["steps"], line.get("in_pipes")
            slowest = max(steps, key=steps.get)
            by = line["how"] if line["how"].startswith("snakemake") else "the rules' commands"
            by += ", in pipes" if in_pipes else ""
            yield (
                f"{of}, {line['reference']}", machine_of(line), f"{line['batch_size'] / 1e6:g} M",
                by, f"{line['seconds']:.1f} s", f"{line['one_program_seconds']:.1f} s",
                f"{line['ratio']:.2f}", f"{line['processor_ratio']:.2f}",
                # In pipes, the times of steps include waiting for each other.
                "" if in_pipes else f"`{slowest}`, {steps[slowest]:.1f} s",
            ), [line]  # fmt: skip

    heads = [
        "reads", "machine", "batch", "run by", "chain", "one program", "ratio", "of CPU seconds",
        "slowest step",
    ]  # fmt: skip
    return table(heads, results, rows())


def off_targets(lines: Lines) -> Table:
    """Draw a row per limit: the searches of bwarp and Sassy, and the whole program."""
    results = "offtargets.jsonl"

    def rows():
        timed = [line for line in lines(results) if line["part"] in ("search", "whole")]
        ours = {(line["part"], limits_of(line)): line for line in timed}
        sassy = {line["mismatches"]: line for line in timed if line["program"] == "sassy"}
        for (part, limits), line in ours.items():
            if part == "whole":
                run = [ours.get(("search", limits)), sassy.get(limits[0]), line]
                cells = (f"{one['seconds']:.3g} s" if one else "" for one in run)
                yield (*limits, *cells, machine_of(line)), [one for one in run if one]

    heads = ["mismatches", "DNA bulge", "RNA bulge", "search", "Sassy", "whole program", "machine"]
    return table(heads, results, rows())


def limits_of(line: dict) -> tuple:
    return line["mismatches"], line["dna_bulge"], line["rna_bulge"]


def mapping(lines: Lines) -> Table:
    results = "map_cpu.json"

    def rows():
        for line in lines(results):
            of = f"{line['reference'].removesuffix('.fa')}, {line['reads']:,}"
            rate = f"{line['reads'] / line['wall_seconds']:,.0f}"
            yield (
                of, line["mapper"], f"{line['wall_seconds']:.1f}", f"{line['cpu_seconds']:.1f}",
                rate, f"{line['memory_mb']:,}", f"{line['right']:.3f}",
                *(f"{line[f'right_q{q}']:.3f} / {line[f'wrong_ppm_q{q}']}" for q in (10, 30)),
            ), [line]  # fmt: skip

    heads = ["reference, reads", "mapper", "seconds", "CPU seconds", "reads per second",
             "memory, MB", "correct %", "Q >= 10 correct % / incorrect ppm",
             "Q >= 30 correct % / incorrect ppm"]  # fmt: skip
    return table(heads, results, rows())


def mapping_on_many_cores(lines: Lines) -> Table:
    results = "map_cores.jsonl"

    def rows():
        for line in lines(results):
            if "memory_mb" in line:
                of = f"{2 * line['pairs']:,} reads, {line['bases'] / 1e6:,.0f} Mb"
                yield (
                    line["what"], of, machine_of(line), f"{line['wall_seconds']:.1f}",
                    f"{line['cpu_seconds']:.0f}", f"{line['memory_mb']:,.0f}",
                ), [line]  # fmt: skip

    heads = ["what", "data", "machine", "seconds", "CPU seconds", "memory, MB"]
    return table(heads, results, rows())


def stages(lines: Lines) -> Table:
    rows = (
        ((line["stage"], f"{line['microseconds_a_read']:.2f}"), [line])
        for line in lines("map_stages_cpu.json")
    )
    return table(["stage", "us a read"], "map_stages_cpu.json", rows)


def index(lines: Lines) -> Table:
    results = "index_cpu.json"

    def rows():
        opened = {
            line["reference"]: line for line in lines(results) if line["what"].startswith("open")
        }
        runs: dict[str, dict[str, dict]] = {}
        for line in lines(results):
            if line["what"].startswith("index"):
                runs.setdefault(line["reference"], {})[line["program"]] = line
        for reference, run in runs.items():
            ours, bwa = run["bwarp"], run.get("bwa index")
            yield (
                f"{reference}, {ours['bases'] / 1e6:.1f} Mb",
                f"{bwa['seconds']:.3g} s" if bwa else "", f"{ours['seconds']:.3g} s",
                f"{bwa['seconds'] / ours['seconds']:.1f} x" if bwa else "",
                f"{ours['peak_mb']:,.0f} MB, {ours['peak_bytes_a_base']:.1f} bytes per base",
                f"{opened[reference]['seconds']:.3f} s",
            ), list(run.values())  # fmt: skip

    version = next((line["version"] for line in lines(results) if line["program"] != "bwarp"), "")
    heads = ["reference", f"bwa index {version}", "bwarp", "", "peak memory",
             "open, all arrays checked"]  # fmt: skip
    return table(heads, results, rows())


def pairs_on_gpu(lines: Lines) -> Table:
    results = "alignment_gpu.jsonl"

    def rows():
        jobs: dict[tuple, dict[str, dict]] = {}
        for line in lines(results):
            if line["part"] == "time pairs":
                jobs.setdefault((line["mode"], line["cells"]), {})[line["what"]] = line
        for (mode, cells), job in jobs.items():
            kernels = (f"{job[what]['tcups_kernels']:.1f}" for what in ("score", "ends", "cigar"))
            whole = f"{job['cigar, host to host']['tcups_wall']:.2f}"
            yield (mode, cells.split("x")[1], *kernels, whole), list(job.values())

    heads = ["mode", "reference", "score", "with ends", "with CIGAR", "host to host, CIGAR"]
    return table(heads, results, rows())


def scan(results: str, machine: str, published: float):
    """Return a function that draws the algorithms in a file of results for the paper's job.

    `published` is the speed of the paper's machine, in 10^9 comparisons per second.
    """

    def draw(lines: Lines) -> Table:
        def rows():
            for line in lines(results):
                if line.get("part") == "paper":
                    speed = line["giga_comparisons_a_second"]
                    yield (
                        f"`{line['algorithm']}`", machine_of(line), line["lengths"],
                        f"{significant(speed)} G", f"{significant(speed / published)} x",
                    ), [line]  # fmt: skip

        heads = ["algorithm", "machine", "lengths of queries, of 155", "comparisons per second",
                 f"against the paper's {machine}"]  # fmt: skip
        return table(heads, results, rows())

    return draw


#: 10^9 comparisons per second of the paper's program on one core, and on its GPU, if its references
#: are as long.
PAPER_CORE = 2_460 / (24 * 60 + 39)
PAPER_GPU = 2_460 / (4 * 60 + 25)

TABLES = {
    "index": index,
    "seeds": beside("k-mers", "seeds_cpu.jsonl", "bowtie"),
    "seeds on a GPU": seeds_on_gpu,
    "matches": beside("job", "mems_cpu.jsonl", "mummer"),
    "matches on a GPU": matches_on_gpu,
    "chunks on GPUs": chunks_on_gpus,
    "loci": loci,
    "mismatches within parts": seed_mismatches,
    "filters": filters,
    "chain of allmap": chain,
    "off-targets": off_targets,
    "mapping": mapping,
    "mapping on many cores": mapping_on_many_cores,
    "stages of mapping": stages,
    "pairs on a GPU": pairs_on_gpu,
    "scan": scan("scan_cpu.jsonl", "core", PAPER_CORE),
    "scan on a GPU": scan("scan_h200.jsonl", "GPU, a GTX 480", PAPER_GPU),
}
