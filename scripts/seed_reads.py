#!/usr/bin/env python3
"""Search packed k-mers in an index: what scripts/batch_reads.py wrote, for
scripts/locate_seeds.py."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.seed_reads import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
