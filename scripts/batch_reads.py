#!/usr/bin/env python3
"""Cut reads into batches, one file each, for the other programs of the chain."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.batch_reads import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
