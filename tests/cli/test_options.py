"""Options of several programs: usual short names, former names, defaults in the help."""

import re
import sys
from importlib import import_module

import pytest

from bwarp.cli.options import mapping_options
from bwarp.cli.subcommands import SUBCOMMANDS

SHORT = "-t 8 -x index -A 2 -B 6 -O 12 -E 2 -L 10 -T 60 -I 400,60 -p -C -R @RG"
LONG = (
    "--threads 8 --index index --match 2 --mismatch -6 --gap-open 12 --gap-extend 2 --clip 10 "
    "--min-score 60 --insert-size 400,60 --interleaved --comments --read-group @RG"
)


@pytest.fixture
def parser(monkeypatch):
    """Return a function that returns the parser of a subcommand, as `bwarp NAME` makes it."""

    def make(name):
        monkeypatch.setattr(sys, "argv", [f"bwarp {name}"])
        monkeypatch.setenv("COLUMNS", "100")
        return import_module(f"bwarp.cli.{SUBCOMMANDS[name].module}").parse_options()

    return make


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_threads_are_t_everywhere(parser, name):
    options = {word for action in parser(name)._actions for word in action.option_strings}
    assert {"-t", "-@", "--threads"} <= options
    assert re.search(r"^  -t N, -@ N, --threads N", parser(name).format_help(), re.M)


def test_a_command_line_of_bwa_mem(parser):
    files = ["-1", "1.fq", "-o", "o.bam"]
    short, long = SHORT.split(), LONG.split()
    typed = parser("map").parse_args(files + short)
    assert typed == parser("map").parse_args(files + long)
    assert typed == parser("map").parse_args([*files, "-@8", *short[2:]])
    parameters = mapping_options(typed)
    assert (parameters.match, parameters.mismatch, parameters.insert_size) == (2, -6, (400, 60))


def test_options_of_bowtie(parser):
    files = ["--queries", "q.fa", "-o", "o.tsv"]
    options = parser("seeds").parse_args([*files, "-x", "index", "-v", "2", "-m", "0"])
    assert (options.index, options.mismatches, options.max_hits) == ("index", 2, 0)


@pytest.mark.parametrize("name", ["pairs", "search", "map"])
def test_scores_are_named_alike(parser, name):
    said = parser(name).format_help()
    for option in ("-A N, --match N", "-B N ", "-O N, --gap-open N", "-E N, --gap-extend N"):
        assert f"\n  {option}" in said


def test_a_penalty_is_checked_as_its_score_is(parser):
    with pytest.raises(Exception, match="argument -B: '0' is not a whole number from 1 to 100"):
        parser("map").parse_args(["-B", "0"])


def test_help_has_every_default_once(parser):
    said = " ".join(parser("search").format_help().split())
    assert "n * --gap-extend (default: 11)" in said
    assert "NUC.4.4 (default: BLOSUM62)" in said
    assert "(default: 0)" in " ".join(parser("seeds").format_help().split())
    for name in SUBCOMMANDS:
        said = parser(name).format_help()
        assert "(default: None)" not in said
        assert "(default: False)" not in said
        assert not re.search(r"\(default:[^()]*\)\s+\(default", said)
