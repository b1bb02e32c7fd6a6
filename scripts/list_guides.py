#!/usr/bin/env python3
"""List the CRISPR guides of a sequence: every protospacer next to a PAM, on both strands."""

import _environment  # noqa: F401

from bwarp.cli.commands.list_guides import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
