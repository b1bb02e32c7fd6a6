#!/usr/bin/env python3
"""Show the GPU, driver, packages, cores and memory that bwarp can use, and what is missing."""

import _environment  # noqa: F401

from bwarp.cli.commands.doctor import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
