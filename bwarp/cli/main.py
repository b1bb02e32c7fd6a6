"""The command `bwarp`: lists its subcommands, or imports and runs the requested one."""

import importlib
import re
import sys
from collections.abc import Collection, Sequence

from bwarp import __version__
from bwarp.cli.starting import guard
from bwarp.cli.subcommands import GROUPS, SUBCOMMANDS, Subcommand
from bwarp.errors import EXTRAS, INSTALL_AGAIN, UsageError, missing_package
from bwarp.io.standard_streams import drop_standard_output


def main() -> None:
    """Run the typed subcommand with its arguments."""
    words = sys.argv[1:]
    if words[:1] == ["help"] and len(words) > 1:
        # "bwarp help map" means "bwarp map --help".
        words = [words[1], "--help"]
    if not words or words[0] in ("-h", "--help", "help"):
        _show(overview())
        return
    if words[0] in ("-V", "--version"):
        _show(f"bwarp {__version__}")
        return
    try:
        command = _subcommand(words[0])
    except UsageError as error:
        print(f"bwarp: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    # The program's name in its help and error messages.
    sys.argv = [f"bwarp {words[0]}", *words[1:]]
    guard()
    try:
        program = importlib.import_module(f"bwarp.cli.{command.module}")
        run_program = importlib.import_module("bwarp.cli.program").run_program
    except ImportError as error:
        if "failed to map segment" in str(error):
            raise
        optional = error.name in EXTRAS
        sentence = missing_package(error.name) if optional else f"{error}: {INSTALL_AGAIN}"
        print(f"{sys.argv[0]}: error: {sentence}", file=sys.stderr)
        sys.exit(2)
    run_program(program.parse_options(), program.main)


def _show(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # The reader has closed the pipe (`| head`).
        drop_standard_output()


def overview() -> str:
    """Return a list of all subcommands, grouped by purpose."""
    width = max(map(len, SUBCOMMANDS))
    lines = ["usage: bwarp COMMAND [options]"]
    for wish, commands in GROUPS.items():
        lines += ["", wish]
        lines += [f"  {name:<{width}}  {command.does}" for name, command in commands.items()]
    lines += ["", "bwarp help COMMAND shows its options and examples, bwarp --version the version."]
    return "\n".join(lines)


def _subcommand(word: str) -> Subcommand:
    """Return the subcommand of this name."""
    if word in SUBCOMMANDS:
        return SUBCOMMANDS[word]
    import difflib

    # Also accept the names of the files in scripts/: bwarp find_seeds is bwarp seeds.
    names = {command.program: name for name, command in SUBCOMMANDS.items()}
    names |= {name: name for name in SUBCOMMANDS}
    typed = word.removesuffix(".py").replace("-", "_")
    nearest = difflib.get_close_matches(word if typed not in names else typed, names, n=1)
    meant = f"did you mean {names[nearest[0]]}?" if nearest else "type bwarp to list all"
    raise UsageError(f"unknown command {word}: {meant} (see bwarp --help)")


# --------------------------------------------------------------------------------------------------
# Suggestions for unknown options.


#: A negative value such as -4 or -0.5,3, which is not an option.
NEGATIVE_NUMBER = re.compile(r"-[0-9.][0-9.,]*")

#: Names of options in bwa mem, samtools and others, if they are not used otherwise here.
_ELSEWHERE = {
    "--cores": "--threads",
    "--cpus": "--threads",
    "-j": "--threads",
    "--rg": "--read-group",
    "-U": "-1",
    "-S": "--output",
}


def unknown_option(words: Sequence[str], known: Collection[str]) -> str | None:
    """Return an error message about the first unknown option, or None if all are known.

    Parameters
    ----------
    words : sequence of str
        The command line.
    known : collection of str
        The existing options, such as -o and --output.
    """
    for word in words:
        if word == "--":
            return None
        name = word.partition("=")[0]
        if _is_option(name) and not _is_known(name, known):
            meant = _meant(name, known)
            return f"unknown option {name}" + (f": did you mean {meant}?" if meant else "")
    return None


def _is_option(name: str) -> bool:
    dashed = name.startswith("-") and name != "-"
    return dashed and " " not in name and not NEGATIVE_NUMBER.fullmatch(name)


def _is_known(name: str, known: Collection[str]) -> bool:
    """Return whether the name is an option, or a short one with its value attached, as in -k20."""
    return name in known or (not name.startswith("--") and name[:2] in known)


def _meant(name: str, known: Collection[str]) -> str | None:
    import difflib  # imported here because it is slow and rarely needed

    long = [option for option in known if option.startswith("--")]
    word = "--" + name.lstrip("-").replace("_", "-")
    likely = [
        _ELSEWHERE.get(name),
        *(difflib.get_close_matches(word, long, n=1) if len(name) > 2 else []),
        None if name.startswith("--") else _ELSEWHERE.get(name[:2]),  # -t4
    ]
    return next((option for option in likely if option in known), None)
