#!/usr/bin/env python3
"""Write the first rows of a table of results, and the number of rows, as a small HTML page."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.preview_table import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
