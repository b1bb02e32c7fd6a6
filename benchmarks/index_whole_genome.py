#!/usr/bin/env python3
"""Time indexing a simulated genome of human size on a GPU, FASTA file to folder, in one command.

Writes one JSON line: the genome, seconds of scripts/index_reference.py, peak memory, the size of
the folder, and the seconds of --verify. A small genome is indexed first, so that everything is
compiled.
"""

import resource
import tempfile
from pathlib import Path

from frame.environment import machine
from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--verify", action="store_true", help="prove the last index")
    add_folder(parser)
    return read_options(parser, "index_whole_genome.jsonl", bases=2_000_000)


def main(options):
    if options.backend == "cuda":
        skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        genome, index = Path(folder, "genome.fa"), Path(folder, "index")

        def make_index(bases: int, contigs: int) -> float:
            run_script("simulate_genome", "-o", genome, "--length", bases, "--contigs", contigs)
            return run_script(
                "index_reference", genome, "-o", index, "--backend", options.backend
            ).wall

        def verify() -> float:
            return run_script("index_reference", "--verify", "-o", index).wall

        make_index(1_000_000, 1)
        verify()
        result = {
            "what": "index_reference.py, FASTA to folder",
            "bases": options.bases,
            "contigs": options.contigs,
            "backend": options.backend,
            "seconds": make_index(options.bases, options.contigs),
            "peak_gb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6, 1),
            "folder_gb": round(sum(f.stat().st_size for f in index.iterdir()) / 1e9, 2),
            "machine": machine(),
        }
        if options.verify:
            result["verify_seconds"] = verify()
    Results(options.output).add(**result)


if __name__ == "__main__":
    main(parse_options())
