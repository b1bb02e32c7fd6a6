#!/usr/bin/env python3
"""Write the tables of an off-target search as an HTML page: guides with their worst sites."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.report_offtargets import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
