#!/usr/bin/env python3
"""Time reading FASTQ into codes against dnaio plus translating each read, in the same run.

    python benchmarks/fastq.py -o benchmarks/results/fastq.json

There are 400,000 simulated reads of 150 bases, plain and gzipped. Times are CPU seconds, medians
over several turns; each result is one JSON line.
"""

import gzip
import statistics
import tempfile
import time
from pathlib import Path

import dnaio
import numpy as np
from frame.options import new_parser, read_options
from frame.results import overwrite
from frame.timing import in_turn

import bwarp
from bwarp.io.fastx import read_sequences
from bwarp.sequence import CODE_OF_BYTE

CODES = CODE_OF_BYTE.tobytes()


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reads", type=int, default=400_000)
    parser.add_argument("--length", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=5)
    return read_options(parser, "fastq.json", reads=1000, repeats=1)


def measure(options):
    with tempfile.TemporaryDirectory() as work:
        plain, packed = Path(work, "reads.fq"), Path(work, "reads.fq.gz")
        text = simulated_reads(options.reads, options.length)
        plain.write_bytes(text)
        packed.write_bytes(gzip.compress(text, 1))
        for path in (plain, packed):
            yield from compare(path, options)


def compare(path: Path, options):
    def seconds(read):
        start = time.process_time()
        if read(path) != options.reads:
            raise SystemExit(f"{read.__name__} lost reads")
        return round(time.process_time() - start, 4)

    programs = {
        ("dnaio and translate", dnaio.__version__): lambda: seconds(with_dnaio),
        ("bwarp", bwarp.__version__): lambda: seconds(with_bwarp),
    }
    with_bwarp(path)  # compiles if necessary
    for (program, version), times in in_turn(programs, options.repeats).items():
        median = statistics.median(times)
        yield {
            "what": f"read FASTQ, {path.suffix[1:]}",
            "program": program,
            "version": version,
            "reads": options.reads,
            "length": options.length,
            "processor_seconds": median,
            "million_reads_a_second": round(options.reads / median / 1e6, 2),
            "all_seconds": times,
        }


def simulated_reads(count: int, length: int) -> bytes:
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


if __name__ == "__main__":
    options = parse_options()
    overwrite(options.output, measure(options))
