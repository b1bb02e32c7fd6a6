"""Speed of seeds, and bytes of the index, by parameters of the index."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from frame.results import Results
from frame.timing import median_seconds

from bwarp.index.bwt_cpu import make_bwt, prefix_table
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.index.packed_text_cpu import pack_text
from bwarp.reference import codes_of
from bwarp.seeding.exact_cpu import exact_intervals
from parts.seed_kmers import kmers_of_reads, packed

__all__ = ["sweep"]

OCC_RATES = (32, 64, 96, 128, 192, 256, 512)
PREFIX_LENGTHS = (0, 4, 6, 8, 9, 10, 11, 12, 13)
SA_RATES = (1, 2, 4, 8, 16, 32, 64)
SWEPT_K = 20


def sweep(options, results: Results, index: FMIndex) -> None:
    reference = index.reference
    codes = codes_of(reference)
    kmers = packed(
        kmers_of_reads(codes, reference.contig_starts, SWEPT_K, options.kmers, options.threads)
    )
    text = pack_text(reference, options.threads)
    n_rows = index.forward.n_rows
    suffixes = locate(index, np.arange(n_rows, dtype=np.uint32), options.threads)
    index = FMIndex(
        reference, index.forward, index.reverse, index.prefix_table, suffixes, sa_rate=1
    )
    found = {"occ_rate": [], "prefix_length": [], "sa_rate": []}

    def add(what, value, number_of, n_bytes, work):
        seconds = median_seconds(work, options.repeats)
        speed = number_of / seconds
        found[what].append((value, n_bytes / n_rows, speed))
        results.add(
            sweep=what,
            value=value,
            part_bytes=n_bytes,
            bytes_a_base=round(n_bytes / n_rows, 4),
            a_second=round(speed),
            threads=options.threads,
        )

    def find(index):
        return exact_intervals(index, kmers.words, SWEPT_K, options.threads)

    # Each occ_rate is compiled separately; with --small, two values of each suffice.
    n_values = 2 if options.small else None
    for rate in OCC_RATES[:n_values]:
        forward, _ = make_bwt(text, rate, 0, text.size, options.threads)
        other = replace(index, forward=forward)
        add("occ_rate", rate, kmers.count, forward.blocks.nbytes, lambda other=other: find(other))
    for length in PREFIX_LENGTHS[:n_values]:
        other = replace(index, prefix_table=prefix_table(text, length))
        n_bytes = other.prefix_table.nbytes
        add("prefix_length", length, kmers.count, n_bytes, lambda other=other: find(other))
    rows = np.random.default_rng(1).integers(0, n_rows, 2_000_000).astype(np.uint32)
    for rate in SA_RATES[:n_values]:
        other = replace(index, suffix_array=suffixes[::rate].copy(), sa_rate=rate)
        n_bytes = other.suffix_array.nbytes
        add(
            "sa_rate",
            rate,
            rows.size,
            n_bytes,
            lambda other=other: locate(other, rows, options.threads),
        )
    if options.plot:
        draw(found, options.plot, options.threads)


def draw(found, path: Path, threads: int) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "bwarp"
    import matplotlib.pyplot as plt

    titles = {
        "occ_rate": ("occ_rate (q)", f"exact {SWEPT_K}-mers, both strands"),
        "prefix_length": ("prefix_length", f"exact {SWEPT_K}-mers, both strands"),
        "sa_rate": ("sa_rate (p)", "rows located"),
    }
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for axis, (what, (label, title)) in zip(axes, titles.items(), strict=True):
        values, sizes, speeds = zip(*found[what], strict=True)
        names = [str(value) for value in values]
        memory = axis.twinx()
        memory.bar(names, sizes, color="#d0d7de", width=0.6)
        memory.set_ylabel("bytes per base")
        axis.plot(names, np.array(speeds) / 1e6, "o-", color="#0969da")
        axis.set_ylim(bottom=0)
        axis.set_zorder(memory.get_zorder() + 1)
        axis.patch.set_visible(False)
        axis.set_xlabel(label)
        axis.set_ylabel(f"million a second, {threads} threads")
        axis.set_title(title, fontsize=10)
    figure.savefig(path, format="svg", metadata={"Date": None})
