#!/usr/bin/env python3
"""How many places words of a length have with so many mismatches, and what finding them costs.

    python benchmarks/choosing.py                 words of a genome made up
    python benchmarks/choosing.py --index chr20.index --output benchmarks/results/choosing_cpu.jsonl
    python benchmarks/choosing.py --draw          the tables of docs/choosing.md, from the results

Words are taken from random places of the reference, and counted with `count_seeds` on one thread:
for each length and number of mismatches one JSON line with the words that have one place (the one
they were taken from), those over the usual limit of 128, the mean, and words a CPU second. The
tables of p and q are drawn from what benchmarks/seeds.py --parts sweep measured.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from machine import processor
from made_up import make_genome, make_index
from options import read_options

from bwarp import __version__
from bwarp.index.store import load_index
from bwarp.io.fastx import SequenceBatch
from bwarp.reference import codes_of
from bwarp.seeding.find import count_seeds, kmer_batches, prepare
from bwarp.seeding.hits import SeedOptions
from bwarp.sequence import AMBIGUOUS

LENGTHS = (12, 14, 16, 18, 20, 24, 30)
LIMIT = 128

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs/choosing.md"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--index", help="folder that index_reference.py made (default: of a genome made up)"
    )
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the genome made up")
    parser.add_argument("--words", type=int, default=2000, help="words of each length")
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
            index = make_index(Path(folder), make_genome(Path(folder), options.bases))
        lines = list(measure(options, Path(index)))
    print(words_table(lines), end="")


def measure(options, index: Path) -> Iterator[dict]:
    stored = load_index(index)
    codes = codes_of(stored.reference)
    # In the order of the cost, so that the first call's reading is not in a time.
    for mismatches in range(4):
        seeds = SeedOptions(mismatches, LIMIT)
        prepared = prepare(stored, seeds, "cpu")
        for k in LENGTHS:
            (kmers,) = kmer_batches(random_words(codes, k, options.words))
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
                "machine": f"{processor()}, one core",
                "bwarp": __version__,
            }
            print(json.dumps(line), flush=True)
            with open(options.output, "a") as file:
                file.write(json.dumps(line) + "\n")
            yield line


def random_words(codes: np.ndarray, k: int, n_words: int) -> SequenceBatch:
    """Words of the reference without ambiguous bases."""
    random = np.random.default_rng(k)
    starts = random.integers(0, codes.size - k, 4 * n_words)
    words = codes[starts[:, None] + np.arange(k)]
    words = words[(words < AMBIGUOUS).all(axis=1)][:n_words]
    offsets = np.arange(len(words) + 1) * k
    headers = np.zeros((len(words), 2), np.int64)
    return SequenceBatch(words.reshape(-1), offsets, None, np.zeros(0, np.uint8), headers, 0)


# --- The page ------------------------------------------------------------------------------------


def with_tables(text: str) -> str:
    """The page with the tables between its marks drawn anew."""
    lines = [json.loads(line) for line in (RESULTS / "choosing_cpu.jsonl").read_text().splitlines()]
    sweeps = [json.loads(line) for line in (RESULTS / "seeds_cpu.jsonl").read_text().splitlines()]
    sweeps = [line for line in sweeps if "sweep" in line]
    tables = {"words": words_table(lines)} | {
        what: sweep_table([line for line in sweeps if line["sweep"] == what], unit)
        for what, unit in (
            ("occ_rate", "20-mers a second"),
            ("prefix_length", "20-mers a second"),
            ("sa_rate", "hits located a second"),
        )
    }
    for name, table in tables.items():
        marks = f"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)"
        text = re.sub(marks, lambda mark, table=table: mark[1] + table + mark[2], text, flags=re.S)
    return text


def words_table(lines: list[dict]) -> str:
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
    rows = [f"| `{lines[0]['sweep']}` | bytes a base | {unit} |", "|---|---|---|"]
    rows += [
        f"| {line['value']} | {line['bytes_a_base']:.2f} | {line['a_second'] / 1e6:.1f} million |"
        for line in lines
    ]
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
