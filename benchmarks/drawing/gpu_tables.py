"""The tables of programs on GPUs: with little memory, on several GPUs, and by step."""

from drawing.figures import Lines, machine_of
from drawing.speed_tables import significant, table
from drawing.tables import Table

__all__ = ["TABLES"]

#: Names of the events of a run in map_gpu.py, and in tables.
EVENTS = {
    "index_and_genome_there": "index and genome are on the GPU and in memory",
    "first_chunk": "the first chunks are done",
    "last_chunk": "the last chunk is done",
    "sorted_and_written": "sorted, compressed and written",
}

PROGRAMS = {
    "map_reads": "`map`",
    "find_seeds": "`seeds`",
    "find_mems": "`mems`",
    "index_reference": "`index`",
}


def mapping_on_gpus(lines: Lines) -> Table:
    """Draw a row for each GPU or number of GPUs, the CPUs of a host, and strobealign."""
    results = "map_gpus.jsonl"

    def rows():
        for line in lines(results):
            seconds = f"{line['seconds']:.1f}"
            if "mapping_seconds" in line:
                by = f"strobealign {line['version']}, to SAM"
                seconds += f", of which {line['mapping_seconds']:.1f} to map"
            else:
                by = {0: "the CPUs", 1: "one GPU"}.get(line["gpus"], f"{line['gpus']} GPUs")
            on_gpu = bool(line.get("gpus"))
            machine = machine_of(line if on_gpu else {**line, "gpu": ""})
            # With gzip, reads of the second half may be inflated during the first.
            rate = line.get("reads_a_second_not_compressed")
            rate = f"{rate / 1e6:.2f} M" if rate else ""
            free = line.get("gb_free")
            memory = (f"{free} GB" if free else "all") if on_gpu else ""
            host = line.get("host_gb", "")
            yield (by, memory, machine, seconds, rate, host), [line]

    heads = ["by", "memory free", "machine", "seconds, gzip", "reads per second, plain text",
             "memory of the host, GB"]  # fmt: skip
    return table(heads, results, rows())


def events_of_mapping(lines: Lines) -> Table:
    """Draw the times of events in a run of map."""
    results = "map_h200.jsonl"
    rows = (
        ((words, f"{line[event]:.1f}"), [line])
        for line in lines(results)
        if line.get("what") == "seconds within a run"
        for event, words in EVENTS.items()
    )
    return table(["event", "seconds from the start"], results, rows)


def steps_of_mapping(lines: Lines) -> Table:
    """Draw the time of each step of map on a GPU, without other steps at the same time."""
    results = "map_h200.jsonl"
    rows = (
        ((step, f"{microseconds:.2f}"), [line])
        for line in lines(results)
        if line.get("what") == "steps"
        for step, microseconds in line["microseconds_a_read"].items()
    )
    return table(["step", "us a read"], results, rows)


def little_memory(lines: Lines) -> Table:
    """Draw a row per size of free memory, with a column per program."""
    results = "small_gpus.jsonl"

    def rows():
        sizes: dict[float | None, dict[str, dict]] = {}
        for line in lines(results):
            sizes.setdefault(line["gb_free"], {})[line["program"]] = line
        for size, runs in sizes.items():
            cells = (
                f"{runs[program]['seconds']:.1f} s" if program in runs else ""
                for program in PROGRAMS
            )
            yield (f"{size:g} GB" if size else "all", *cells), list(runs.values())

    return table(["memory free", *PROGRAMS.values()], results, rows())


def other_scans(lines: Lines) -> Table:
    """Draw jobs of the window scan on a GPU other than the paper's."""
    results = "scan_h200.jsonl"

    def rows():
        found = lines(results)
        kernel = [line for line in found if line["part"] == "kernel"]
        if kernel:
            speeds = [line["tera_comparisons_a_second"] for line in kernel]
            made = "the kernel of `tiles` alone, the comparisons that it makes"
            yield (made, "", f"{min(speeds):.1f} to {max(speeds):.1f} T"), kernel
        for line in found:
            if line["part"] == "whole":
                what = f"the program, FASTA to table on disk, `{line['options']}`"
            elif line["part"] == "best":
                what = f"the {line['wanted']} best windows of each query, in memory"
            elif line["part"] == "mirbase":
                what = f"micro-RNAs against {line['against']}, counted"
            else:
                continue
            speed = line.get("giga_comparisons_a_second")
            cells = f"{significant(line['seconds'])} s", f"{speed / 1e3:.1f} T" if speed else ""
            yield (what, *cells), [line]

    return table(["job", "time", "comparisons per second"], results, rows())


TABLES = {
    "mapping on GPUs": mapping_on_gpus,
    "events of mapping on a GPU": events_of_mapping,
    "steps of mapping on a GPU": steps_of_mapping,
    "programs on small GPUs": little_memory,
    "other scans on a GPU": other_scans,
}
