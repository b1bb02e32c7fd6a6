#!/usr/bin/env python3
"""Say what this machine has that bwarp can use: GPU, driver, packages, cores, memory; which engine
will run, and why; and what to type to install what is missing."""

import _environment  # noqa: F401
import llvmlite.binding

from bwarp.backend import gpu_problem
from bwarp.doctor import diagnose, gather
from bwarp.program import program_parser, run_program

EXAMPLES = """
scripts/doctor.py
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES)


def main(options):
    findings = diagnose(gather(gpu_problem(), llvmlite.binding.get_host_cpu_features()))
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.what:<{width}}  {finding.found}")
        if finding.advice:
            print(f"{'':<{width}}    -> {finding.advice}")


if __name__ == "__main__":
    run_program(parse_options(), main)
