"""The options of every benchmark: where its results go, and little data to try it with."""

import argparse
import os
import sys
from pathlib import Path

from bwarp.runtime.backend import gpu_problem
from bwarp.runtime.threads import available_threads
from frame.environment import CHECKOUT

__all__ = [
    "CHECKOUT",
    "HERE",
    "SHARED",
    "add_folder",
    "add_threads",
    "large_file",
    "new_parser",
    "read_options",
    "skip",
    "skip_without_gpu",
]

#: Real data, where it is there.
SHARED = CHECKOUT.parent / "shared" / "data"
#: What is measured without naming a file. git ignores it; the files above it are kept in git, and
#: hold what other machines measured.
HERE = CHECKOUT / "benchmarks" / "results" / "here"


def new_parser(description: str) -> argparse.ArgumentParser:
    """A parser whose help shows a program's docstring as it is."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=available_threads())


def read_options(
    parser: argparse.ArgumentParser, results: str | None, **small
) -> argparse.Namespace:
    """The options, `output` and `small` among them.

    Parameters
    ----------
    results : str or None
        Name of the file in results/here/ that results go to where none is named; None for a
        program that prints what it finds and no more.
    **small
        Values of other options that --small gives where they are not named.
    """
    if results:
        parser.add_argument(
            "-o",
            "--output",
            type=Path,
            default=HERE / results,
            help="JSON file of results (default: %(default)s)",
        )
    parser.add_argument(
        "--small", action="store_true", help="so little data that it only shows that all runs"
    )
    if parser.parse_args().small:
        parser.set_defaults(**small)
    return parser.parse_args()


def large_file(name: str) -> Path | None:
    """A file of $BWARP_LARGE, or of ../shared/data/large; None where it is not there."""
    path = Path(os.environ.get("BWARP_LARGE") or SHARED / "large") / name
    return path if path.is_file() else None


def skip(reason: str) -> None:
    """End well without a result, and say why."""
    print(f"{Path(sys.argv[0]).name}: skipped: {reason}")
    sys.exit(0)


def skip_without_gpu() -> None:
    problem = gpu_problem()
    if problem is not None:
        skip(problem)
