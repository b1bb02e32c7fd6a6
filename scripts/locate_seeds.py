#!/usr/bin/env python3
"""Turn what scripts/seed_reads.py found into positions: the tables of scripts/find_seeds.py."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.locate_seeds import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
