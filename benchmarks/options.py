"""The options that every benchmark has: where its results go, and little data to try it with."""

import argparse
import sys
from pathlib import Path

from bwarp.runtime.backend import gpu_problem

__all__ = ["HERE", "read_options", "skip", "skip_without_gpu"]

#: What is measured without naming a file. git ignores it; the files above it are kept in git, and
#: hold what other machines measured.
HERE = Path(__file__).parent / "results" / "here"


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


def skip(reason: str) -> None:
    """End well without a result, and say why."""
    print(f"{Path(sys.argv[0]).name}: skipped: {reason}")
    sys.exit(0)


def skip_without_gpu() -> None:
    problem = gpu_problem()
    if problem is not None:
        skip(problem)
