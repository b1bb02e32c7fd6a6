#!/usr/bin/env python3
"""Search the first seeds of reads in an index: what scripts/chunk_reads.py wrote."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.seed_chunks import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
