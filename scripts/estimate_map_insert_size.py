#!/usr/bin/env python3
"""Estimate the insert size from the best hits of the first pairs, as map_reads.py does."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.estimate_map_insert_size import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
