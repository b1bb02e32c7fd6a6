#!/usr/bin/env python3
"""Write a table of what every step of the chain made of a sample's reads, and of its time."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.count_steps import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
