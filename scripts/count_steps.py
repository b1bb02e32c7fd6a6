#!/usr/bin/env python3
"""Write a table of the results and times of each step of the chain for a sample."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.count_steps import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
