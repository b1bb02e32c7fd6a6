"""The error for an unknown option names it, and suggests a similar one."""

import pytest

from bwarp.cli.main import unknown_option

KNOWN = ("-o", "--output", "--threads", "--read-group", "--min-score", "-1", "-k", "--index")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("--theads", "--threads"),
        ("--thread=3", "--threads"),
        ("--min_score", "--min-score"),
        ("-threads", "--threads"),
        ("--cores", "--threads"),
        ("-j", "--threads"),
        ("-j4", "--threads"),
        ("-U", "-1"),
        ("-S", "--output"),
        ("--read-grp=@RG\tID:a b", "--read-group"),
        ("--idx", "--index"),
    ],
)
def test_suggestions(word, meant):
    name = word.partition("=")[0]
    assert unknown_option(["-o", "out", word, "5"], KNOWN) == (
        f"unknown option {name}: did you mean {meant}?"
    )


@pytest.mark.parametrize("word", ["--zzz", "-z", "-A"])
def test_no_similar_option(word):
    assert unknown_option([word], KNOWN) == f"unknown option {word}"


@pytest.mark.parametrize(
    "words", [[], ["-"], ["-k20"], ["-1R1.fq"], ["--output=--x"], ["-4"], ["-- a"], ["--", "--x"]]
)
def test_no_options_or_known_ones(words):
    assert unknown_option(words, KNOWN) is None


def test_the_first_of_several():
    assert unknown_option(["--indx", "--thread"], KNOWN).startswith("unknown option --indx:")
