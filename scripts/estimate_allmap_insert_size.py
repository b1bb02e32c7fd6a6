#!/usr/bin/env python3
"""Estimate the insert size of pairs from the loci of the first batches."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.estimate_allmap_insert_size import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
