"""The options in config.yaml exist in the programs."""

import runpy
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from frame import options  # noqa: E402
from frame.table import benchmarks  # noqa: E402

DATA = {
    "genome": "genome.fa",
    "index": "genome.index",
    "indexes": "mappers",
}


@pytest.mark.parametrize("small", [False, True], ids=["full", "small"])
@pytest.mark.parametrize("name", benchmarks())
def test_options_are_known(name, small, monkeypatch):
    def parsed(*arguments, read=options.read_options, **values):
        read(*arguments, **values)
        raise SystemExit("the options are read")

    monkeypatch.setattr(options, "read_options", parsed)
    program, *words = benchmarks()[name].command(DATA, small)
    monkeypatch.setattr(sys, "argv", [str(program), *words, "-o", "results.jsonl"])
    with pytest.raises(SystemExit, match="the options are read"):
        runpy.run_path(str(program), run_name="__main__")
