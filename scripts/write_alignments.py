#!/usr/bin/env python3
"""Write the loci of a batch, with their CIGARs: BAM, TSV or PAF."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.steps.write_alignments import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
