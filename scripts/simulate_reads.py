#!/usr/bin/env python3
"""Simulate sequencing reads of a reference, with their origins in their names."""

import _environment  # noqa: F401

from bwarp.cli.commands.simulate_reads import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
