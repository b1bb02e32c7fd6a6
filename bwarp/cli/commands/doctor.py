"""Report what bwarp can use on this machine (GPU, driver, packages, cores, memory), which engine
it will run and why, and how to install what is missing."""

from bwarp.cli.program import program_parser
from bwarp.runtime.backend import gpu_problem
from bwarp.runtime.compiler import binding
from bwarp.runtime.machine import diagnose, gather

EXAMPLES = """
bwarp doctor
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES)


def main(options):
    findings = diagnose(gather(gpu_problem(), binding.get_host_cpu_features()))
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        print(f"{finding.what:<{width}}  {finding.found}")
        if finding.advice:
            print(f"{'':<{width}}    -> {finding.advice}")
