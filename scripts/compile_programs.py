#!/usr/bin/env python3
"""Compile what the programs usually need for this machine, all at once, by running them on a small
data set. Where all is compiled already nothing is done."""

import _environment  # noqa: F401

from bwarp.cli.commands.compile_programs import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
