#!/usr/bin/env python3
"""Merge the tables of the parts of a search."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.merge_tables import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
