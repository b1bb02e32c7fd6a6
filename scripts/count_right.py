#!/usr/bin/env python3
"""Count how many simulated reads lie where their names say they are from, by mapping quality."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.count_right import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
