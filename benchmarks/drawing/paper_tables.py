"""The tables of docs/papers.md: experiments of the five papers, with their published results."""

from itertools import groupby
from statistics import median

from drawing.figures import Lines, machine_of, megabases_of, reference_of
from drawing.speed_tables import significant, table
from drawing.tables import Table

__all__ = ["TABLES"]

#: Liu & Schmidt's seconds for a million k-mers, in total and for the search: one core, GPU.
LIU = {
    "S11": ((60.7, 10.6), (5.8, 6.8)),
    "S15": ((122.4, 12.4), (7.3, 7.2)),
    "S20": ((179.8, 17.6), (139.8, 14.9)),
    "S24": ((129.1, 15.8), (107.6, 13.4)),
    "S30": ((1094.0, 80.9), (1067.6, 78.6)),
}


def liu(results: str):
    """Return a function that draws Tables I and II: seconds for a million k-mers."""

    def draw(lines: Lines) -> Table:
        def rows():
            for line in lines(results):
                if "data_set" not in line:
                    continue
                scale = 1e6 / line["kmers"]
                whole, search = LIU[line["data_set"]]
                limit = f"at most {line['max_hits']}" if line["max_hits"] else "all"
                seconds = (line["whole_seconds"], line["search_seconds"])
                machine = machine_of(line)
                if line["locate"] == "hybrid":
                    machine += ", positions by the CPU"
                yield (
                    line["data_set"], reference_of(line), line["algorithm"], limit,
                    machine, f"{line['kmers']:,}", f"{line['hits']:,}",
                    *(f"{significant(scale * one)} s" for one in seconds),
                    f"{whole[0]:g} / {whole[1]:g} s", f"{search[0]:g} / {search[1]:g} s",
                ), [line]  # fmt: skip

        heads = ["data set", "reference", "algorithm", "hits of a k-mer", "machine",
                 "k-mers measured", "their hits located", "whole, a million", "search alone",
                 "the paper's whole, one core / GPU", "its search"]  # fmt: skip
        return table(heads, results, rows())

    return draw


def liu_on_gpu(lines: Lines) -> Table:
    """Draw Tables I and II on a GPU, and positions looked up by the CPU, as in Figure 5."""
    results = "seeds_gpu.jsonl"

    def rows():
        for line in lines(results):
            hybrid = {run["dataset"]: run for run in line["whole_runs_hybrid"]}
            for run in (*line["whole_runs_auto"], *line["whole_runs_all_located"]):
                name, limited = run["dataset"], run["max_hits"] > 0
                whole, search = LIU[name]
                times = (
                    f"{median(run['seconds']):.3g} s", f"{run['search_seconds']:.3g} s",
                    f"{median(hybrid[name]['seconds']):.3g} s" if limited else "",
                )  # fmt: skip
                yield (
                    name, f"{line['bases'] / 1e6:,.0f} Mb, simulated",
                    f"at most {run['max_hits']}" if limited else "all", f"{run['hits']:,}",
                    f"{run['over']:,}", *times, f"{whole[1]:g} s", f"{search[1]:g} s",
                ), [line]  # fmt: skip

    heads = ["data set", "reference", "hits of a k-mer", "hits located", "k-mers over the limit",
             "whole, a million", "search alone", "whole, positions by the CPU",
             "the paper's whole, GPU", "its search"]  # fmt: skip
    return table(heads, results, rows())


def drozd(lines: Lines) -> Table:
    """Draw Figure 2: seconds by size of the reference, reads of 100 bases, both strands."""
    results = "mems_cpu.jsonl"

    def rows():
        ours = [line for line in lines(results) if "unique" in line["what"]]
        ours.sort(key=megabases_of)
        for (what, reference), run in groupby(ours, lambda line: (line["what"], line["reference"])):
            run = {line["program"]: line for line in run}
            cells = (f"{run[p]['seconds']:.3g} s" if p in run else "" for p in ("bwarp", "mummer"))
            index = f"{run['bwarp']['bwarp_index_s']:.3g} s"
            yield (reference, what, index, *cells, machine_of(run["bwarp"])), list(run.values())

    heads = ["reference", "what", "bwarp, the index, once", "bwarp, with the index",
             "mummer, its index included", "machine"]  # fmt: skip
    return table(heads, results, rows())


def streams(lines: Lines) -> Table:
    """Draw Figure 5: the paper's method by number of streams."""
    results = "scan_h200.jsonl"
    rows = (
        ((line["streams"], f"{line['giga_comparisons_a_second']:.1f} G", machine_of(line)), [line])
        for line in lines(results)
        if line.get("part") == "streams"
    )
    return table(["streams", "comparisons per second", "machine"], results, rows)


def ren_lengths(lines: Lines) -> Table:
    """Draw Figures 8 and 12: GCUPS of batches by length of both sequences, on one core."""
    results = "pairs_cpu.jsonl"

    def rows():
        some = [line for line in lines(results) if line.get("workload") == "synthetic"]
        for length, batch in groupby(some, lambda line: line["length"]):
            batch = list(batch)
            yield (length, *(significant(line["gcups"]) for line in batch)), batch

    return table(["length", "25 pairs", "100 pairs", "1,000 pairs"], results, rows())


def ren_lengths_on_gpu(lines: Lines) -> Table:
    """Draw Figure 8: both designs on a GPU, host to host, and one core of the same machine."""
    results, counts = "alignment_gpu.jsonl", (25, 100, 1000)

    def rows():
        some = [line for line in lines(results) if line["part"] == "time figure 8"]
        some = [line for line in some if line["pairs"] in counts]
        for what, batch in groupby(some, lambda line: line["what"]):
            batch = list(batch)
            design, length = what.rsplit(" ", 1)
            yield (design, length, *(significant(line["gcups_wall"]) for line in batch)), batch

    heads = ["design", "length", "25 pairs", "100 pairs", "1,000 pairs"]
    return table(heads, results, rows())


def ren_situations(results: str, engine: str):
    """Return a function that draws Table 3: GCUPS in the paper's batches, and in one call."""

    def draw(lines: Lines) -> Table:
        def rows():
            some = [line for line in lines(results) if str(line.get("workload")).startswith("situ")]
            for name, run in groupby(some, lambda line: line["workload"]):
                run = {line["handed"]: line for line in run}
                one = run["batches"]
                cells = (significant(run[handed]["gcups"]) for handed in ("batches", "together"))
                published = one["published_gpu_stage_1_gcups"]
                yield (name, f"{one['pairs']:,}", *cells, published), list(run.values())

        heads = ["workload", "pairs", f"{engine}, in batches", "together",
                 "the paper's Tesla K40, in batches, first stage"]  # fmt: skip
        return table(heads, results, rows())

    return draw


def chang(lines: Lines) -> Table:
    """Draw Table III: milliseconds for a query of 128 against 100 sequences."""
    results = "search_cpu.jsonl"
    rows = (
        (
            (
                line["length"], f"{line['milliseconds']:.3g}", significant(line["gcups"]),
                line["published_method"], " / ".join(map(str, line["published_cudasw_kernels"])),
                line["published_cpu"],
            ),
            [line],
        )
        for line in lines(results)
        if line.get("part") == "chang"
    )  # fmt: skip
    heads = ["length", "bwarp, one core, ms", "GCUPS", "the paper's method on a Tesla C1060, ms",
             "CUDASW++'s kernels", "its CPU"]  # fmt: skip
    return table(heads, results, rows)


def chang_on_gpu(lines: Lines) -> Table:
    """Draw Table III on a GPU, one query: the paper's prefix scan and the default kernel."""
    results = "alignment_gpu.jsonl"

    def rows():
        published = {
            line["length"]: line["published_method"]
            for line in lines("search_cpu.jsonl")
            if line.get("part") == "chang"
        }
        lengths: dict[int, dict[str, dict]] = {}
        for line in lines(results):
            # The benchmark also times two queries at once, unlike the paper.
            if line["part"] == "time table III" and line.get("queries") == 1:
                engine, length = line["what"].rsplit(" ", 1)
                lengths.setdefault(int(length), {})[engine] = line
        for length, run in lengths.items():
            cells = (
                f"{sum(run[engine]['ms'].values()):.3g}" if engine in run else ""
                for engine in ("prefix scan", "profile")
            )
            yield (length, *cells, published.get(length, "")), list(run.values())

    heads = ["length", "prefix scan, ms", "profile, ms",
             "the paper's method on a Tesla C1060, ms"]  # fmt: skip
    return table(heads, results, rows())


TABLES = {
    "Liu and Schmidt": liu("seeds_tables.jsonl"),
    "Liu and Schmidt on a GPU": liu_on_gpu,
    "Liu and Schmidt, backtracking": liu("seeds_backtracking.jsonl"),
    "Liu and Schmidt, all located": liu("seeds_located.jsonl"),
    "Drozd": drozd,
    "Breland, streams": streams,
    "Ren, lengths": ren_lengths,
    "Ren, lengths on a GPU": ren_lengths_on_gpu,
    "Ren, situations": ren_situations("pairs_cpu.jsonl", "one core"),
    "Ren, situations on a GPU": ren_situations("pairs_h200.jsonl", "a GPU"),
    "Chang and Chen": chang,
    "Chang and Chen on a GPU": chang_on_gpu,
}
