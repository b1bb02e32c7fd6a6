#!/usr/bin/env python3
"""Find every hit of k-mers in a reference, with mismatches, on both strands."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_seeds import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
