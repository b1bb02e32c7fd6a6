#!/usr/bin/env python3
"""Turn the rows of scripts/seed_chunks.py into candidates: places where reads may belong."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.locate_chunks import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
