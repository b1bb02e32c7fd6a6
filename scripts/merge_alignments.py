#!/usr/bin/env python3
"""Merge the sorted BAM files of a sample's units, and their statistics."""

import _environment  # noqa: F401

from bwarp.cli.commands.merge_alignments import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
