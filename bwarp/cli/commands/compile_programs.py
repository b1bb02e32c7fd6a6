"""Compile the functions of all programs, or of the named ones, with one process per thread.
Functions that are already compiled are skipped.

Otherwise a program compiles its functions at first use, which takes up to half a minute, and
rare options compile a few more. Compiled code is stored next to the package if that folder is
writable, else in the user's cache, or in NUMBA_CACHE_DIR. It works on machines with the same kind
of processor and GPU.
"""

from bwarp.cli.first_use.compiling import compile_missing
from bwarp.cli.first_use.listed_functions import (
    functions_of_kind,
    functions_of_programs,
    programs_of_table,
)
from bwarp.cli.program import choose_engine, program_parser
from bwarp.errors import UsageError
from bwarp.runtime.backend import gpu_capability
from bwarp.runtime.compiled_code import code_folder

EXAMPLES = """
bwarp compile
bwarp compile index map
bwarp compile --backend cpu
"""

#: The kinds of run in `make run`. Its genome has repeats, which only "further" runs of index have.
DEMO = (
    "simulate-genome", "index both", "index further", "simulate-reads", "map pairs local bam",
    "merge", "seeds mismatches tsv",
)  # fmt: skip


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM",
        help=f"any of {', '.join(programs_of_table())} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--demo", action="store_true", help="compile only what the demo calls on a CPU"
    )
    return parser


def main(options):
    known = programs_of_table()
    unknown = [name for name in options.programs if name not in known]
    if unknown:
        raise UsageError(f"program {unknown[0]} is not one of {', '.join(known)}")
    if code_folder() is None:
        raise UsageError(
            "compiled code cannot be stored: set NUMBA_CACHE_DIR to a folder that only you can "
            "write"
        )
    if options.demo:
        functions = dict.fromkeys(one for kind in DEMO for one in functions_of_kind(kind))
        compile_missing(list(functions), [], options.threads)
        return
    programs = options.programs or known
    capability = gpu_capability() if choose_engine(options.backend) == "cuda" else None
    functions = functions_of_programs(programs)
    compile_missing(functions, programs, options.threads, capability)
