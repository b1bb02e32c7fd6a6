"""Write the speed table of README.md from the results in benchmarks/results.

    python benchmarks/speed_table.py            write it
    python benchmarks/speed_table.py --check    only say whether it is up to date, by the exit code

A result is a JSON line; those with `what` and `seconds` are shown, one row for each thing that was
timed, with the peers that were timed in the same run beside bwarp.
"""

import json
import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
MARKED = re.compile(
    r"(?<=<!-- speed table: begin -->\n).*?(?=<!-- speed table: end -->)", re.DOTALL
)


def read_results(folder: Path) -> list[dict]:
    """Every timed result, in the order of the files' names and lines."""
    lines = [line for path in sorted(folder.glob("*.json*")) for line in path.open()]
    return [result for result in map(json.loads, lines) if {"what", "seconds"} <= result.keys()]


def speed_table(results: list[dict]) -> str:
    """A Markdown table with a row for each thing that was timed."""
    rows = {}
    for result in results:
        of = result.get("reference") or f"{result['bases'] / 1e6:,.0f} Mb"
        row = rows.setdefault((result["what"], of, result["machine"]), {})
        row[result.get("program", "bwarp")] = result["seconds"]
    table = ["| what | of | bwarp | others | on |", "|---|---|---|---|---|"]
    for (what, of, machine), seconds in rows.items():
        peers = ", ".join(f"{name} {shown(s)}" for name, s in seconds.items() if name != "bwarp")
        table.append(f"| {what} | {of} | {shown(seconds['bwarp'])} | {peers} | {machine} |")
    return "\n".join(table) + "\n"


def shown(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def main() -> None:
    page = CHECKOUT / "README.md"
    old = page.read_text()
    table = speed_table(read_results(CHECKOUT / "benchmarks" / "results"))
    new = MARKED.sub(lambda _: table, old)
    if "--check" in sys.argv[1:]:
        sys.exit(new != old and "README.md: run python benchmarks/speed_table.py")
    page.write_text(new)


if __name__ == "__main__":
    main()
