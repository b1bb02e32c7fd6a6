#!/usr/bin/env python3
"""Find maximal exact matches between queries and a reference, in the format of MUMmer 3."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_mems import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
