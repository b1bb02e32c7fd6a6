#!/usr/bin/env python3
"""Compile the functions of all programs for this machine now, instead of at their first use."""

import _environment  # noqa: F401

from bwarp.cli.commands.compile_programs import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
