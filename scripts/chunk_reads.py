#!/usr/bin/env python3
"""Read FASTQ into chunks of packed reads, for scripts/seed_chunks.py."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.chunk_reads import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
