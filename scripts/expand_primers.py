#!/usr/bin/env python3
"""Write out degenerate primers: every sequence that IUPAC letters such as R, Y and N stand for."""

import _environment  # noqa: F401

from bwarp.cli.commands.expand_primers import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
