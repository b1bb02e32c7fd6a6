#!/usr/bin/env python3
"""Draw the timeline of a run: one row per thread, one colour per step."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.draw_timeline import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
