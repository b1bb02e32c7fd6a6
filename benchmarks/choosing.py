#!/usr/bin/env python3
"""Count hits of k-mers by length and mismatches, and time the search.

    python benchmarks/choosing.py                 k-mers of a simulated genome
    python benchmarks/choosing.py --index chr20.index --output benchmarks/results/choosing_cpu.jsonl
    python benchmarks/choosing.py --draw          draw the tables of docs/choosing.md

K-mers are taken from random positions of the reference, and counted with `count_seeds` on one
thread. For each length and number of mismatches there is one JSON line with the number of k-mers
("words") with a single hit (their origin), the number over the usual limit of 128, the mean, and
the k-mers per CPU second. The tables of p and q are drawn from the results of benchmarks/seeds.py
--parts sweep.
"""

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from frame.options import CHECKOUT, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome, make_index

from bwarp.index.store import load_index
from bwarp.io.fastx import SequenceBatch
from bwarp.reference import codes_of
from bwarp.seeding.find import count_seeds, kmer_batches, prepare
from bwarp.seeding.hits import SeedOptions
from bwarp.sequence import AMBIGUOUS

LENGTHS = (12, 14, 16, 18, 20, 24, 30)
LIMIT = 128

RESULTS = CHECKOUT / "benchmarks/results"
PAGE = CHECKOUT / "docs/choosing.md"


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument(
        "--index", help="folder that index_reference.py made (default: of a simulated genome)"
    )
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--words", type=int, default=2000, help="k-mers of each length")
    parser.add_argument("--draw", action="store_true", help="write the tables of docs/choosing.md")
    parser.add_argument("--check", action="store_true", help="fail if those are not up to date")
    return read_options(parser, "choosing_cpu.jsonl", words=20, bases=200_000)


def main():
    options = parse_options()
    if options.draw or options.check:
        text = PAGE.read_text()
        drawn = with_tables(text)
        if options.check:
            sys.exit(0 if drawn == text else f"{PAGE} is old: benchmarks/choosing.py --draw")
        PAGE.write_text(drawn)
        return
    with tempfile.TemporaryDirectory() as folder:
        index = options.index
        if index is None:
            genome = make_genome(Path(folder), options.bases)
            index = make_index(Path(folder), genome, "--with-reverse")
        lines = list(measure(options, Path(index)))
    print(kmers_table(lines), end="")


def measure(options, index: Path) -> Iterator[dict]:
    results = Results(options.output)
    stored = load_index(index)
    codes = codes_of(stored.reference)
    # The first call, which reads the index, is not timed.
    for mismatches in range(4):
        seeds = SeedOptions(mismatches, LIMIT)
        prepared = prepare(stored, seeds, "cpu")
        for k in LENGTHS:
            (kmers,) = kmer_batches(random_kmers(codes, k, options.words))
            count_seeds(prepared, kmers, seeds, "cpu", 1)
            start = time.process_time()
            hits = np.asarray(count_seeds(prepared, kmers, seeds, "cpu", 1))
            seconds = time.process_time() - start
            line = {
                "benchmark": "choosing",
                "reference": index.stem,
                "bases": stored.reference.n_bases,
                "k": k,
                "mismatches": mismatches,
                "words": len(hits),
                "one_place": int(np.count_nonzero(hits == 1)),
                "over_limit": int(np.count_nonzero(hits > LIMIT)),
                "mean_hits": round(float(hits.mean()), 1),
                "words_a_cpu_second": round(len(hits) / seconds),
                "threads": 1,
            }
            results.add(**line)
            yield line


def random_kmers(codes: np.ndarray, k: int, count: int) -> SequenceBatch:
    """Return random k-mers of the reference without ambiguous bases."""
    random = np.random.default_rng(k)
    starts = random.integers(0, codes.size - k, 4 * count)
    kmers = codes[starts[:, None] + np.arange(k)]
    kmers = kmers[(kmers < AMBIGUOUS).all(axis=1)][:count]
    offsets = np.arange(len(kmers) + 1) * k
    headers = np.zeros((len(kmers), 2), np.int64)
    return SequenceBatch(kmers.reshape(-1), offsets, None, np.zeros(0, np.uint8), headers, 0)


# --- The page ------------------------------------------------------------------------------------


def with_tables(text: str) -> str:
    """Return the page with new tables between its markers."""
    lines = [json.loads(line) for line in (RESULTS / "choosing_cpu.jsonl").read_text().splitlines()]
    sweeps = [json.loads(line) for line in (RESULTS / "seeds_cpu.jsonl").read_text().splitlines()]
    sweeps = [line for line in sweeps if "sweep" in line]
    tables = {"words": kmers_table(lines)} | {
        what: sweep_table([line for line in sweeps if line["sweep"] == what], unit)
        for what, unit in (
            ("occ_rate", "20-mers per second"),
            ("prefix_length", "20-mers per second"),
            ("sa_rate", "hits located per second"),
        )
    }
    for name, table in tables.items():
        marks = f"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
        text = re.sub(marks, lambda mark, table=table: mark[1] + table + mark[2], text, flags=re.S)
    return text


def kmers_table(lines: list[dict]) -> str:
    rows = ["| k | 0 mismatches | 1 mismatch | 2 mismatches | 3 mismatches |", "|---|" + "---|" * 4]
    for k in LENGTHS:
        cells = []
        for mismatches in range(4):
            (line,) = [x for x in lines if (x["k"], x["mismatches"]) == (k, mismatches)]
            one, over = (100 * line[key] / line["words"] for key in ("one_place", "over_limit"))
            cells.append(
                f"{line['mean_hits']:,.0f}; {one:.0f} %, {over:.0f} %; "
                f"{line['words_a_cpu_second']:,}"
            )
        rows.append(f"| {k} | " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def sweep_table(lines: list[dict], unit: str) -> str:
    rows = [f"| `{lines[0]['sweep']}` | bytes per base | {unit} |", "|---|---|---|"]
    rows += [
        f"| {line['value']} | {line['bytes_a_base']:.2f} | {line['a_second'] / 1e6:.1f} million |"
        for line in lines
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
