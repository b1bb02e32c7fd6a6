"""Which option was meant by one that does not exist."""

import re
from collections.abc import Collection, Sequence

__all__ = ["NEGATIVE_NUMBER", "unknown_option"]

#: A value such as -4 or -0.5,3, which is no option.
NEGATIVE_NUMBER = re.compile(r"-[0-9.][0-9.,]*")

#: What bwa mem, samtools and others call what is here, where their own names are not taken.
_ELSEWHERE = {
    "--cores": "--threads",
    "--cpus": "--threads",
    "-j": "--threads",
    "--rg": "--read-group",
    "-U": "-1",
    "-S": "--output",
}


def unknown_option(words: Sequence[str], known: Collection[str]) -> str | None:
    """What to say of the first word that looks like an option and is none; None if there is none.

    Parameters
    ----------
    words : sequence of str
        The command line.
    known : collection of str
        The options there are, such as -o and --output.
    """
    for word in words:
        if word == "--":
            return None
        name = word.partition("=")[0]
        if _is_option(name) and not _is_known(name, known):
            meant = _meant(name, known)
            return f"there is no option {name}" + (f": did you mean {meant}?" if meant else "")
    return None


def _is_option(name: str) -> bool:
    dashed = name.startswith("-") and name != "-"
    return dashed and " " not in name and not NEGATIVE_NUMBER.fullmatch(name)


def _is_known(name: str, known: Collection[str]) -> bool:
    """Whether it is an option, or a short one with its value behind it, as in -k20."""
    return name in known or (not name.startswith("--") and name[:2] in known)


def _meant(name: str, known: Collection[str]) -> str | None:
    import difflib  # here, for it is slow to import, and most command lines have no such option

    long = [option for option in known if option.startswith("--")]
    word = "--" + name.lstrip("-").replace("_", "-")
    likely = [
        _ELSEWHERE.get(name),
        *(difflib.get_close_matches(word, long, n=1) if len(name) > 2 else []),
        None if name.startswith("--") else _ELSEWHERE.get(name[:2]),  # -t4
    ]
    return next((option for option in likely if option in known), None)
