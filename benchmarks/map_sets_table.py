"""Print the tables of docs/map.md of what benchmarks/map_sets.py measured.

python benchmarks/map_sets_table.py
python benchmarks/map_sets_table.py --here     of results/here/
"""

import json
import math

from frame.options import CHECKOUT, HERE, new_parser

#: Sets of this seed were looked at when rules and parameters were chosen.
CHOSEN_WITH = 1


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--here", action="store_true", help="what this machine measured last")
    return parser.parse_args()


def print_sets(rows: list[dict]) -> None:
    """A row a set: both mappers."""
    print("| genome | reads | differences | correct %, bwarp / bwa mem | Q >= 10 incorrect ppm "
          "| Q >= 30 correct % | Q >= 30 incorrect ppm |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    sets: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        sets.setdefault((row["genome"], row["reads"], row["rate"]), {})[row["mapper"]] = row
    for (genome, reads, rate), by_mapper in sets.items():
        both = [by_mapper[mapper] for mapper in ("bwarp", "bwa mem") if mapper in by_mapper]
        cells = (
            " / ".join(form.format(row[key]) for row in both)
            for key, form in (
                ("right", "{:.2f}"),
                ("wrong_ppm_q10", "{}"),
                ("right_q30", "{:.2f}"),
                ("wrong_ppm_q30", "{}"),
            )
        )
        print(f"| {genome} | {reads.replace('x', ' x ')} | {rate:g} % | {' | '.join(cells)} |")


def print_calibration(rows: list[dict]) -> None:
    """Claimed and observed qualities of all sets together, by steps of quality."""
    print("\n| quality | reads | claimed, bwarp | observed, bwarp | claimed, bwa mem "
          "| observed, bwa mem |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    steps = {}
    for row in rows:
        for step in row["calibration"]:
            found = steps.setdefault(step["least"], {}).setdefault(row["mapper"], [0, 0.0, 0])
            for at, key in enumerate(("reads", "claimed", "wrong")):
                found[at] += step[key]
    lows = sorted(steps)
    for low, high in zip(lows, [*lows[1:], 61], strict=True):
        cells = []
        for mapper in ("bwarp", "bwa mem"):
            n, claimed, wrong = steps[low][mapper]
            # Half a read more, so that none incorrect has a quality as well.
            cells += [f"{-10 * math.log10(share / n):.1f}" for share in (claimed, wrong + 0.5)]
        print(f"| {low} to {high - 1} | {steps[low]['bwarp'][0]:,} | {' | '.join(cells)} |")


def main():
    options = parse_options()
    folder = HERE if options.here else CHECKOUT / "benchmarks/results"
    with open(folder / "map_sets.jsonl") as file:
        rows = [row for row in map(json.loads, file) if row["seed"] != CHOSEN_WITH]
    print_sets(rows)
    print_calibration(rows)


if __name__ == "__main__":
    main()
