#!/usr/bin/env python3
"""Write a database of sequences to a folder for searches."""

import _environment  # noqa: F401

from bwarp.cli.commands.index_database import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
