#!/usr/bin/env python3
"""Cut the queries of a search into parts, one per machine."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.cut_queries import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
