"""Running a failing program of scripts/ in the test process, without starting Python."""

import importlib.util
import sys
from pathlib import Path

import pytest

from bwarp.cli.program import run_program
from tests.helpers.programs.program_output import without_progress


def refusal(script: Path, arguments, monkeypatch, capsys) -> tuple[int, str]:
    """Return exit code and standard error of a program that must fail and write nothing."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    monkeypatch.setattr(sys, "argv", [script.name])
    parser = program.parse_options()
    with pytest.raises(SystemExit) as left:
        run_program(parser, program.main, list(map(str, arguments)))
    written = capsys.readouterr()
    assert written.out == ""
    return left.value.code, without_progress(written.err)
