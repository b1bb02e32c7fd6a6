#!/usr/bin/env python3
"""Simulate a genome with the repeats and gaps of a real one."""

import _environment  # noqa: F401

from bwarp.cli.commands.simulate_genome import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
