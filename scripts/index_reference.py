#!/usr/bin/env python3
"""Index a reference for the other programs of bwarp."""

import _environment  # noqa: F401

from bwarp.cli.commands.index_reference import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
