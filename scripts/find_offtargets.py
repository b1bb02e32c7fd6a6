#!/usr/bin/env python3
"""Find every site of CRISPR guides in a genome, with mismatches and bulges, and score them."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_offtargets import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
