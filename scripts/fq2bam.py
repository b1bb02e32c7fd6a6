#!/usr/bin/env python3
"""Map reads to sorted BAM with marked duplicates, with the options of fq2bam of Parabricks."""

import _environment  # noqa: F401

from bwarp.cli.commands.fq2bam import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
