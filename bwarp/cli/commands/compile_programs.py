"""Compile what the programs usually need for this machine, all at once, by running them on a small
data set. Where all is compiled already nothing is done.

Without it every program compiles what it needs when it is first used, which takes up to a minute.
Compiled functions are kept beside the package where that can be written, else in the user's cache,
or where NUMBA_CACHE_DIR says; they serve machines with the same kind of processor, and of GPU.
"""

import sys
import tempfile
import time
from pathlib import Path

from bwarp.cli.compilation_runs import RUNS, run_all
from bwarp.cli.program import program_parser, say
from bwarp.errors import BwarpError
from bwarp.runtime.backend import may_have_gpu
from bwarp.runtime.compiled_code import is_complete, mark_complete
from bwarp.runtime.progress import duration

#: Programs that share a GPU: each may take 10 GB of it.
MOST_ON_A_GPU = 4

EXAMPLES = """
scripts/compile_programs.py
scripts/compile_programs.py --backend cpu
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES)


def main(options):
    # A GPU may come later to where all was compiled without one.
    on_gpu = options.backend != "cpu" and may_have_gpu()
    kind = f"{options.backend} {on_gpu}"
    if is_complete(kind):
        return
    processes = min(options.threads, MOST_ON_A_GPU if on_gpu else len(RUNS))
    say(f"compiling the programs for this machine, {processes} at a time: a minute or two, once")
    start = time.monotonic()
    problems = []
    with tempfile.TemporaryDirectory(prefix="bwarp-") as folder:
        words = ["--backend", options.backend, "--threads", "2"]
        command = [sys.executable, "-m", "bwarp"]
        runs = run_all(command, Path(folder), words, processes)
        for number, (name, problem) in enumerate(runs, 1):
            problems += [problem] if problem else []
            state = problem or f"compiled after {duration(time.monotonic() - start)}"
            say(f"  {number} of {len(RUNS)}, {name}: {state}")
    if problems:
        raise BwarpError(f"not all could be compiled: {problems[0]}")
    mark_complete(kind)
