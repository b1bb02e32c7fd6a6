#!/usr/bin/env python3
"""The former name of count_correct.py."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.count_correct import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
