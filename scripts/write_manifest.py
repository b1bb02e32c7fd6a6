#!/usr/bin/env python3
"""Write the manifest of a run as JSON: checksums of its files, versions, parameters."""

import _environment  # noqa: F401

from bwarp.cli.program import run_program
from bwarp.cli.reports.write_manifest import main, parse_options

if __name__ == "__main__":
    run_program(parse_options(), main)
