#!/usr/bin/env python3
"""Select primary alignments of scripts/extend_candidates.py: SAM, BAM or CRAM out."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.write_alignments import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
