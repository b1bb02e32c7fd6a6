#!/usr/bin/env python3
"""Align pairs of sequences: query i with reference i, with score, position and CIGAR."""

import _environment  # noqa: F401

from bwarp.cli.commands.align_pairs import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
