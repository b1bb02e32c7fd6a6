#!/usr/bin/env python3
"""Write the report on mapped reads, and the sections of a MultiQC report."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.draw_report import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
