#!/usr/bin/env python3
"""Drop hits that have too many edits according to a lower bound."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.filter_candidates import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
