#!/usr/bin/env python3
"""Search a database of proteins or nucleotides for the hits with the best Smith-Waterman scores."""

import _environment  # noqa: F401

from bwarp.cli.commands.search_database import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
