"""Running programs in scripts/ in the test process, in a separate folder."""

import contextlib
import functools
import importlib.util
import io
import os
from pathlib import Path
from typing import NamedTuple

from bwarp.cli.program import run_program

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"


class Outcome(NamedTuple):
    """The result of a program: its exit code, its messages, and the names in its folder."""

    rc: int
    said: str
    left: list[str]

    @property
    def last_line(self) -> str:
        return self.said.rstrip("\n").rpartition("\n")[2]


@functools.cache
def program(name: str):
    """Return the module of a program, imported once."""
    spec = importlib.util.spec_from_file_location(name, SCRIPTS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_here(name: str, *arguments, folder: Path) -> Outcome:
    """Run a program on the CPU with one thread; only catch `SystemExit`."""
    module = program(name)
    said = io.StringIO()
    rc = 0
    try:
        with contextlib.redirect_stderr(said):
            parser = module.parse_options()
            parser.prog = f"{name}.py"
            options = ["--threads", "1", "--backend", "cpu"]
            run_program(parser, module.main, [*map(str, arguments), *options])
    except SystemExit as left:
        rc = left.code
    return Outcome(rc, said.getvalue(), sorted(os.listdir(folder)))
