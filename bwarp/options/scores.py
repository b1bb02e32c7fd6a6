"""Options for the scores of alignments."""

from bwarp.options.option import PROGRAM, Option, Whole

#: Maximum score or cost for reads, so that int8 tables and int32 sums hold them.
MOST_SCORE = 100


def score_options(
    most: int, most_gap: int, least: int = 0, *, match: str = "1", mismatch: str = "-4",
    gap_open: str | int = "6", gap_extend: str | int = "1",
) -> tuple[Option, ...]:  # fmt: skip
    """Return the options for scores of matches, mismatches and gaps, with these defaults."""

    def option(name: str, short: str, value: Whole, text: str, default: str | int) -> Option:
        given = {"unset": default} if isinstance(default, str) else {"default": default}
        return Option(name, value, text, short=short, **given)

    return (
        option("match", "-A", Whole(least, most), "score of a match", match),
        option("mismatch", "", Whole(-most, -least), "score of a mismatch", mismatch),
        Option(
            "B", Whole(least, most, negated=True), "score of a mismatch as a positive number",
            only=PROGRAM, dest="mismatch",
        ),
        option(
            "gap_open", "-O", Whole(0, most_gap),
            "cost to open a gap: a gap of n bases costs `--gap-open` + n * "
            "`--gap-extend`",
            gap_open,
        ),
        option(
            "gap_extend", "-E", Whole(least, most_gap), "cost of each base of a gap", gap_extend
        ),
    )  # fmt: skip


def scores_of_reads() -> tuple[Option, ...]:
    """Return the score options for reads; defaults scale with the score of a match."""
    grow = {"mismatch": "-4", "gap_open": "6", "gap_extend": "1"}
    return score_options(
        MOST_SCORE, MOST_SCORE, 1, **{name: f"{score} times match" for name, score in grow.items()}
    )
