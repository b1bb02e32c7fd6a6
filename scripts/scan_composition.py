#!/usr/bin/env python3
"""Find every window of the references whose base counts are similar to those of a query."""

import _environment  # noqa: F401

from bwarp.cli.commands.scan_composition import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
