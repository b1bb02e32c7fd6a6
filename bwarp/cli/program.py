"""The frame that every program runs in: exit codes, one-line errors, common options.

A program is a function of parsed arguments. `run_program` calls it and reports every error as one
line on standard error, with the exit code that `bwarp.errors` gives it, and 130 for Ctrl-C.
Tracebacks are shown only with --debug, because they do not help users.
"""

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence

from bwarp import __version__
from bwarp.cli.error_sentences import explanation
from bwarp.cli.first_use.compiling import compile_once
from bwarp.cli.first_use.listed_functions import kind_of
from bwarp.cli.main import NEGATIVE_NUMBER, unknown_option
from bwarp.cli.starting import begin_work, leave
from bwarp.cli.subcommands import subcommand_name
from bwarp.cli.timeline_file import timeline_to
from bwarp.errors import UsageError
from bwarp.gpu.device import claim_gpu, give_up_cuda, is_step, release_gpu
from bwarp.io.standard_streams import (
    drop_standard_output,
    fill_closed_streams,
    flush_standard_output,
)
from bwarp.options.common import OVERALL, THREADS
from bwarp.options.option import CONFIGURATION, QUOTED_OPTIONS, Option, Task
from bwarp.runtime import compiler
from bwarp.runtime.backend import choose_backend, gpu_capability, gpu_problem
from bwarp.runtime.progress import announce_compilation, quietly, say, write_line
from bwarp.runtime.signals import ended_by_signals
from bwarp.runtime.threads import available_threads

_CODES = """

exit codes:
  0 success, 1 unusable data, 2 unusable option, 3 out of memory (of the host or
  of the GPU), 4 out of disk space, 130 Ctrl-C, 143 SIGTERM
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keep line breaks, and append the default to the help of an option."""

    def _get_help_string(self, action: argparse.Action) -> str:
        has_default = action.nargs != 0 and isinstance(action.default, int | float | str)
        shown = has_default and action.option_strings and "default" not in action.help
        return action.help + (" (default: %(default)s)" if shown else "")


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that refers to --help."""

    def parse_known_args(self, args=None, namespace=None):
        self._words = self._with_negative_values(args)
        parsed, left = super().parse_known_args(self._words, namespace)
        self._refuse_empty_words(parsed)
        return parsed, left

    def _refuse_empty_words(self, parsed: argparse.Namespace) -> None:
        """Reject empty arguments: an empty path would name this folder, and no option takes one."""
        for action in self._actions:
            value = getattr(parsed, action.dest, None)
            if "" in (value if isinstance(value, list) else [value]):
                name = "/".join(action.option_strings) or action.metavar
                self.error(f"argument {name}: empty value, perhaps an unset variable")

    def _with_negative_values(self, arguments: Sequence[str] | None) -> list[str]:
        """Return --mismatch -4 as --mismatch=-4: argparse takes -4 for an option if -1 is one.

        Quoted options of another program start with a hyphen too.
        """
        words: list[str] = []
        known = self._option_string_actions
        for word in sys.argv[1:] if arguments is None else arguments:
            option = known.get(words[-1]) if words else None
            takes_number = option and option.type and option.nargs is None
            is_value = takes_number and NEGATIVE_NUMBER.fullmatch(word)
            is_value = is_value or (option and option.metavar == QUOTED_OPTIONS)
            if is_value and words[-1].startswith("--"):
                words[-1] += f"={word}"
            else:
                words.append(word)
        return words

    def error(self, message: str):
        message = unknown_option(self._words, self._option_string_actions) or message
        raise UsageError(f"{message} (see {self.prog} --help)")


def program_parser(
    description: str, examples: str, *declared: Option | Task
) -> argparse.ArgumentParser:
    """Return an argument parser with the options of all programs and examples in its help.

    Parameters
    ----------
    *declared : Option or Task
        Further options, or a task with all its options for programs.
    """
    parser = _Parser(
        prog=os.path.basename(sys.argv[0]),
        description="\n\n".join(
            textwrap.fill(paragraph, 80) for paragraph in description.split("\n\n")
        ),
        epilog="examples:\n" + textwrap.indent(textwrap.dedent(examples).strip(), "  ") + _CODES,
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    THREADS._replace(default=available_threads()).add_to(parser)
    for option in OVERALL:
        option.add_to(parser)
    parser.add_argument("-V", "--version", action="version", version=f"bwarp {__version__}")
    for one in declared:
        if isinstance(one, Option):
            one.add_to(parser)
            continue
        for title, options in one.groups.items():
            target = parser.add_argument_group(title) if title else parser
            for option in options:
                if option.only != CONFIGURATION:
                    option.add_to(target)
    return parser


def choose_engine(requested: str, gpus: int = 1) -> str:
    """Return the engine for a requested backend; if it is `cuda`, reserve GPUs for this process.

    Up to `gpus` free GPUs are reserved; if no GPU is used although several were requested, say so.
    """
    if requested != "cpu":
        claim_gpu(say, most=gpus, shared=is_step(subcommand_name()))
    backend = choose_backend(requested)
    if backend == "cpu":
        if gpus > 1:
            why = "--backend cpu" if requested == "cpu" else gpu_problem() or "no GPU responds"
            say(f"--gpus {gpus} has no effect: no GPU is used ({why})")
        give_up_cuda()
    else:
        from bwarp.gpu.cuda import event as kernel_event

        announce_compilation(kernel_event, "numba-cuda:run_pass")
    return backend


def compile_first(backend: str, options: argparse.Namespace, *inputs: str | None) -> None:
    """Compile what a run with these options needs in parallel, unless that is done already.

    Missing files among `inputs` are reported first; ``-`` is standard input.
    """
    for path in inputs:
        if path not in (None, "-"):
            os.stat(path)
    name = subcommand_name()
    if name is not None:
        capability = gpu_capability() if backend == "cuda" else None
        compile_once(kind_of(name, options), available_threads(), capability)


def _announce_compilation() -> None:
    announce_compilation(compiler.event)


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    try:
        return parser.parse_args(arguments)
    except SystemExit:
        # --help and --version print and exit.
        try:
            flush_standard_output()
        except BrokenPipeError:
            drop_standard_output()
        raise


def run_program(
    parser: argparse.ArgumentParser,
    main: Callable[[argparse.Namespace], None],
    arguments: Sequence[str] | None = None,
) -> None:
    """Parse the command line, run `main`, and exit with the appropriate code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    fill_closed_streams()
    compiler.when_compiling(_announce_compilation)
    try:
        with ended_by_signals(parser.prog):
            options = _parsed(parser, arguments)
            begin_work()
            with quietly(options.quiet), timeline_to(options.timeline):
                main(options)
            flush_standard_output()
    except BrokenPipeError:
        # The reader of the output has closed the pipe (`| head`).
        drop_standard_output()
        sys.exit(1)
    except Exception as error:
        explained = explanation(error)
        if explained is None or "--debug" in arguments:
            raise
        message, code = explained
        try:
            flush_standard_output()
        except OSError:  # it may be what failed
            drop_standard_output()
        write_line(f"{parser.prog}: error: {message}")
        sys.exit(code)
    finally:
        release_gpu()
    leave()
