#!/usr/bin/env python3
"""In-silico PCR: find the products of primer pairs in a genome."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_products import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
