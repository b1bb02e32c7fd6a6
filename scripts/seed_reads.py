#!/usr/bin/env python3
"""Cut the reads of a batch into parts and search the parts in an index."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.seed_reads import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
