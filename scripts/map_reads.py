#!/usr/bin/env python3
"""Map reads of up to 10,000 bases to an indexed reference: FASTQ or BAM in, SAM or BAM out."""

import _environment  # noqa: F401

from bwarp.cli.commands.map_reads import main, parse_options
from bwarp.cli.program import run_program

if __name__ == "__main__":
    run_program(parse_options(), main)
