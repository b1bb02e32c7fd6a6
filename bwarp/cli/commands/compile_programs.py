"""Compile what programs need on this machine before they are used, in as many processes as there
are threads: all of them, or those that are named. Where all is compiled already nothing is done.

Without it a program does so when it is first used, which takes up to half a minute. Compiled
functions are kept beside the package where that can be written, and serve all who use it; else in
the user's cache, or where NUMBA_CACHE_DIR says. They serve machines with the same kind of
processor, and of GPU.
"""

from bwarp.cli.first_use.compiling import compile_once
from bwarp.cli.program import choose_engine, program_parser
from bwarp.cli.subcommands import COMPILED_FIRST
from bwarp.errors import UsageError
from bwarp.runtime.backend import gpu_capability

EXAMPLES = """
scripts/compile_programs.py
scripts/compile_programs.py index map
scripts/compile_programs.py --backend cpu
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM",
        help=f"any of {', '.join(COMPILED_FIRST)} (default: all)",
    )  # fmt: skip
    return parser


def main(options):
    unknown = [name for name in options.programs if name not in COMPILED_FIRST]
    if unknown:
        raise UsageError(f"program {unknown[0]} is not one of {', '.join(COMPILED_FIRST)}")
    programs = sorted(set(options.programs or COMPILED_FIRST))
    capability = gpu_capability() if choose_engine(options.backend) == "cuda" else None
    compile_once(programs, options.threads, capability)
    if capability:
        from bwarp.gpu.radix_sort import compiled_sort

        compiled_sort(capability)
