#!/usr/bin/env python3
"""Time reading FASTQ into codes against dnaio with a translation of every read, in the same run.

    python benchmarks/fastq.py -o benchmarks/results/fastq.json

400,000 made-up reads of 150 bases, plain and gzipped. Processor seconds, medians of turns taken;
one JSON line each.
"""

import argparse
import gzip
import json
import platform
import statistics
import tempfile
import time
from pathlib import Path

import dnaio
import numpy as np
from machine import machine
from options import read_options

import bwarp
from bwarp.io.fastx import read_sequences
from bwarp.sequence import CODE_OF_BYTE

CODES = CODE_OF_BYTE.tobytes()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--reads", type=int, default=400_000)
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=5)
    return read_options(parser, "fastq.json", reads=1000, repeats=1)


def main(options):
    lines = []
    with tempfile.TemporaryDirectory() as work:
        plain, packed = Path(work, "reads.fq"), Path(work, "reads.fq.gz")
        text = made_up_reads(options.reads, options.length)
        plain.write_bytes(text)
        packed.write_bytes(gzip.compress(text, 1))
        for path in (plain, packed):
            programs = {"dnaio and translate": with_dnaio, "bwarp": with_bwarp}
            times = {program: [] for program in programs}
            with_bwarp(path)  # compiles, where that has not been done
            for _ in range(options.repeats):
                for program, read in programs.items():
                    start = time.process_time()
                    if read(path) != options.reads:
                        raise SystemExit(f"{program} lost reads")
                    times[program].append(round(time.process_time() - start, 4))
            for program, seconds in times.items():
                lines.append(
                    {
                        "what": f"read FASTQ, {path.suffix[1:]}",
                        "program": program,
                        "version": bwarp.__version__ if program == "bwarp" else dnaio.__version__,
                        "reads": options.reads,
                        "length": options.length,
                        "processor_seconds": statistics.median(seconds),
                        "million_reads_a_second": round(
                            options.reads / statistics.median(seconds) / 1e6, 2
                        ),
                        "all_seconds": seconds,
                        **circumstances(),
                    }
                )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    options.output.write_text(text)
    print(text, end="")


def made_up_reads(count: int, length: int) -> bytes:
    rng = np.random.default_rng(150)
    bases = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, (count, length))]
    qualities = rng.integers(35, 74, (count, length)).astype(np.uint8)
    return b"".join(
        b"@A00123:45:HXXXX:1:1101:%d:%d 1:N:0:ACGTACGT\n%s\n+\n%s\n"
        % (i, i * 7 % 10_000, bases[i].tobytes(), qualities[i].tobytes())
        for i in range(count)
    )


def with_dnaio(path: Path) -> int:
    count = 0
    with dnaio.open(path, open_threads=0) as file:
        for record in file:
            record.sequence.encode().translate(CODES)
            count += 1
    return count


def with_bwarp(path: Path) -> int:
    return sum(batch.count for batch in read_sequences(path))


def circumstances() -> dict:
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    main(parse_options())
