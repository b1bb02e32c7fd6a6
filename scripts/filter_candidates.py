#!/usr/bin/env python3
"""Drop candidates whose base or k-mer counts prove that no wanted alignment exists."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.filter_candidates import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
