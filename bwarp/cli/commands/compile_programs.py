"""Compile all functions that programs call, in as many processes as there are threads: those of all
programs and options, or those of the programs that are named. What is compiled already is left.

Without it, a program compiles what it needs when it is first used, which takes up to half a minute,
and a run with rare options compiles a little more. Compiled code is kept beside the package where
that can be written, else in the user's cache, or where NUMBA_CACHE_DIR says. It serves machines
with the same kind of processor, and of GPU.
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

#: The kinds of run that `make run` consists of.
DEMO = (
    "simulate-genome", "index both", "simulate-reads", "map pairs local bam", "merge",
    "seeds exact tsv",
)  # fmt: skip


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument(
        "programs", nargs="*", metavar="PROGRAM",
        help=f"any of {', '.join(programs_of_table())} (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--demo", action="store_true", help="only what the demo's programs call on a CPU"
    )
    return parser


def main(options):
    known = programs_of_table()
    unknown = [name for name in options.programs if name not in known]
    if unknown:
        raise UsageError(f"program {unknown[0]} is not one of {', '.join(known)}")
    if code_folder() is None:
        raise UsageError(
            "compiled code cannot be kept: no folder for it can be written: set NUMBA_CACHE_DIR "
            "to one that you alone may write"
        )
    if options.demo:
        functions = dict.fromkeys(one for kind in DEMO for one in functions_of_kind(kind))
        compile_missing(list(functions), [], options.threads)
        return
    programs = options.programs or known
    capability = gpu_capability() if choose_engine(options.backend) == "cuda" else None
    functions = functions_of_programs(programs)
    compile_missing(functions, programs, options.threads, capability)
    if capability:
        from bwarp.gpu.sums_and_sorts import compiled_sort

        compiled_sort(capability)
