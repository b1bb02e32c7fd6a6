#!/usr/bin/env python3
"""Find every alignment of reads with at most a given number of edits; none is missed."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_alignments import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
