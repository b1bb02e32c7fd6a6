"""Options of programs that work on batches of reads, and on parts of a unit."""

import argparse

__all__ = ["add_batch_options", "add_estimate_option", "part_of_parts"]


def add_batch_options(parser, required: bool = False) -> None:
    """Reads that were cut into batches."""
    parser.add_argument(
        "--batches", required=required, metavar="FOLDER",
        help="folder of reads that batch_reads.py made",
    )  # fmt: skip


def add_estimate_option(parser, made_by: str) -> None:
    """What was estimated of the pairs of a unit before."""
    parser.add_argument(
        "--estimated-insert-size", metavar="INSERT_SIZE.json", help=f"file that {made_by} wrote"
    )


def part_of_parts(text: str) -> tuple[int, int]:
    """What was typed as 3/20: one of so many parts."""
    part, slash, parts = text.partition("/")
    if not (slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(
            f"{text!r}: write which part, and of how many, such as 3/20"
        )
    return int(part), int(parts)
