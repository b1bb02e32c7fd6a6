#!/usr/bin/env python3
"""Turn the SA rows of scripts/seed_chunks.py into candidates: where reads may align."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.locate_chunks import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
