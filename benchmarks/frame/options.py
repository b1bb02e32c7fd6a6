"""The options of all benchmarks: the output file, and small data for trying them."""

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

#: The folder of real data, which may be missing.
SHARED = CHECKOUT.parent / "shared" / "data"
#: Results without a named file go here. git ignores this folder; the files above it are in git, and
#: contain results of other machines.
HERE = CHECKOUT / "benchmarks" / "results" / "here"


def new_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser whose help shows a program's docstring unchanged."""
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
    """Return the options, including `output` and `small`.

    Parameters
    ----------
    results : str or None
        Name of the default file for results in results/here/; None for a program that only prints.
    **small
        Values that --small gives to other options that are not set.
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
    """Return a file in $BWARP_LARGE or ../shared/data/large; None if it is missing."""
    path = Path(os.environ.get("BWARP_LARGE") or SHARED / "large") / name
    return path if path.is_file() else None


def skip(reason: str) -> None:
    """Exit successfully without results, and say why."""
    print(f"{Path(sys.argv[0]).name}: skipped: {reason}")
    sys.exit(0)


def skip_without_gpu() -> None:
    problem = gpu_problem()
    if problem is not None:
        skip(problem)
