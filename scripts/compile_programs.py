#!/usr/bin/env python3
"""Compile the functions that programs usually need, by running the programs on a small data set."""

import _environment  # noqa: F401

from bwarp.cli.commands.compile_programs import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
