"""Print the tables of docs/map.md of what benchmarks/map_sets.py measured.

python benchmarks/map_sets_table.py
python benchmarks/map_sets_table.py --here     of results/here/
"""

import json
import math

from frame.options import CHECKOUT, HERE, new_parser

#: Sets of this seed were looked at when rules and parameters were chosen.
CHOSEN_WITH = 1

MAPPERS = ("bwarp", "bwa mem")


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--here", action="store_true", help="what this machine measured last")
    return parser.parse_args()


def sets_of(rows: list[dict]) -> dict[tuple, dict[str, dict]]:
    """Genome, reads, rate and seed, and the rows of each mapper."""
    sets: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        key = row["genome"], row["reads"], row["rate"], row["seed"]
        sets.setdefault(key, {})[row["mapper"]] = row
    return sets


def mean(rows: list[dict], key: str) -> float:
    """Of all reads, or of a million."""
    return sum(row[key] * row["total"] for row in rows) / sum(row["total"] for row in rows)


def cells_of(by_mapper: dict[str, list[dict]]) -> str:
    """Both mappers, or as many as there are: correct and incorrect reads."""
    both = [by_mapper[mapper] for mapper in MAPPERS if mapper in by_mapper]
    forms = ("right", "{:.2f}"), ("wrong_ppm_q10", "{:.0f}"), ("right_q30", "{:.2f}")
    return " | ".join(
        " / ".join(form.format(mean(rows, key)) for rows in both)
        for key, form in (*forms, ("wrong_ppm_q30", "{:.0f}"))
    )


def print_reads(sets: dict) -> None:
    """A row a genome and kind of reads: sets of all rates and seeds together."""
    print("| genome | reads | sets | correct %, bwarp / bwa mem | Q >= 10 incorrect ppm "
          "| Q >= 30 correct % | Q >= 30 incorrect ppm |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    kinds: dict[tuple, list[dict]] = {}
    for (genome, reads, _, _), by_mapper in sets.items():
        kinds.setdefault((genome, reads), []).append(by_mapper)
    for (genome, reads), members in sorted(kinds.items(), key=order):
        together = {
            mapper: [member[mapper] for member in members]
            for mapper in MAPPERS
            if all(mapper in member for member in members)
        }
        print(f"| {genome} | {reads.replace('x', ' x ')} | {len(members)} | {cells_of(together)} |")


def order(item: tuple) -> tuple:
    """By genome, and by ends and length of the reads."""
    genome, reads, *others = item[0]
    return genome, *map(int, reads.split("x")), *others


def print_worse(sets: dict) -> None:
    """A row a set in which bwa mem is better."""
    print("\n| genome | reads | differences | seed | correct %, bwarp / bwa mem "
          "| Q >= 10 incorrect ppm | Q >= 30 correct % | Q >= 30 incorrect ppm |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for (genome, reads, rate, seed), by_mapper in sorted(sets.items(), key=order):
        if not all(mapper in by_mapper for mapper in MAPPERS):
            continue
        ours, other = (by_mapper[mapper] for mapper in MAPPERS)
        fewer = ours["right_q30"] < other["right_q30"]
        if fewer or any(ours[key] > other[key] for key in ("wrong_ppm_q10", "wrong_ppm_q30")):
            cells = cells_of({mapper: [by_mapper[mapper]] for mapper in MAPPERS})
            print(f"| {genome} | {reads.replace('x', ' x ')} | {rate:g} % | {seed} | {cells} |")


def print_calibration(rows: list[dict]) -> None:
    """Claimed and observed qualities of each genome, all its sets together, by steps of quality."""
    print("\n| genome | quality | reads | claimed, bwarp | observed, bwarp | claimed, bwa mem "
          "| observed, bwa mem |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    steps = {}
    for row in rows:
        for step in row["calibration"]:
            found = steps.setdefault(row["genome"], {}).setdefault(step["least"], {})
            found = found.setdefault(row["mapper"], [0, 0.0, 0])
            for at, key in enumerate(("reads", "claimed", "wrong")):
                found[at] += step[key]
    for genome, by_step in sorted(steps.items()):
        lows = sorted(by_step)
        for low, high in zip(lows, [*lows[1:], 61], strict=True):
            cells = []
            for mapper in MAPPERS:
                n, claimed, wrong = by_step[low].get(mapper, (0, 0.0, 0))
                # Half a read more, so that none incorrect has a quality as well.
                pair = (claimed, wrong + 0.5) if n and claimed else ()
                cells += [f"{-10 * math.log10(share / n):.1f}" for share in pair] or ["", ""]
            n = by_step[low].get("bwarp", (0,))[0]
            print(f"| {genome} | {low} to {high - 1} | {n:,} | {' | '.join(cells)} |")


def main():
    options = parse_options()
    folder = HERE if options.here else CHECKOUT / "benchmarks/results"
    with open(folder / "map_sets.jsonl") as file:
        rows = [row for row in map(json.loads, file) if row["seed"] != CHOSEN_WITH]
    sets = sets_of(rows)
    print(len(sets), "sets\n")
    print_reads(sets)
    print_worse(sets)
    print_calibration(rows)


if __name__ == "__main__":
    main()
