"""Compile what programs need on this machine before they are used, in as many processes as there
are threads: all of them, or those that are named. Where all is compiled already nothing is done.

Without it a program does so when it is first used, which takes up to half a minute. Compiled
functions are kept beside the package where that can be written, and serve all who use it; else in
the user's cache, or where NUMBA_CACHE_DIR says. They serve machines with the same kind of
processor, and of GPU: for a GPU the programs are run on a small data set.
"""

import sys
import tempfile
import time
from pathlib import Path

from bwarp.cli.first_use.compiling import compile_once
from bwarp.cli.first_use.runs import RUNS, run_all
from bwarp.cli.program import program_parser, say
from bwarp.cli.subcommands import COMPILED_FIRST
from bwarp.errors import BwarpError, UsageError
from bwarp.runtime.backend import may_have_gpu
from bwarp.runtime.compiled_code import kept_functions
from bwarp.runtime.progress import duration

#: Programs that share a GPU: each may take 10 GB of it.
MOST_ON_A_GPU = 4

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
    compile_once(sorted(set(options.programs or COMPILED_FIRST)), options.threads)
    # A GPU may come later to where all was compiled without one.
    if options.backend != "cpu" and may_have_gpu():
        compile_kernels(options.backend, min(options.threads, MOST_ON_A_GPU))


def compile_kernels(backend: str, processes: int) -> None:
    """Run the programs where there is a GPU, unless that was done for this version."""
    kept = kept_functions()
    words = ("kernels", kept.state, backend)
    if kept.get(*words) is not None:
        return
    say(f"compiling kernels for the GPU, {processes} programs at a time: a minute or two, once")
    start = time.monotonic()
    problems = []
    with tempfile.TemporaryDirectory(prefix="bwarp-") as folder:
        words_of_all = ["--backend", backend, "--threads", "2"]
        command = [sys.executable, "-m", "bwarp"]
        runs = run_all(command, Path(folder), words_of_all, processes)
        for number, (name, problem) in enumerate(runs, 1):
            problems += [problem] if problem else []
            state = problem or f"compiled after {duration(time.monotonic() - start)}"
            say(f"  {number} of {len(RUNS)}, {name}: {state}")
    if problems:
        raise BwarpError(f"not all could be compiled: {problems[0]}")
    kept.put(b"done", *words)
