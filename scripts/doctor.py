#!/usr/bin/env python3
"""Say what this machine has that bwarp can use: GPU, driver, packages, cores, memory; which engine
will run, and why; and what to type to install what is missing."""

import _environment  # noqa: F401

from bwarp.cli.commands.doctor import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
