#!/usr/bin/env python3
"""Look up the positions of the intervals that bwarp seed-reads found."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.locate_seeds import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
