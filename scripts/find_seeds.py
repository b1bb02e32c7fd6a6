#!/usr/bin/env python3
"""Find every place where a k-mer, or its reverse complement, lies in a reference, with at most so
many mismatches at any position."""

import _environment  # noqa: F401

from bwarp.cli.commands.find_seeds import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
