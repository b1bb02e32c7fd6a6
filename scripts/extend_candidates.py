#!/usr/bin/env python3
"""Verify candidates: the loci where reads align with few edits."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.extend_candidates import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
