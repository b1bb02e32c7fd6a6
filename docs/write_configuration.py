#!/usr/bin/env python3
"""Write the tables of config/README.md: each key with its default, allowed values, and effect.

The tables are made from the declarations in bwarp/options/. With --check nothing is written; the
exit code says whether the page is up to date.
"""

import re
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
PAGE = CHECKOUT / "config/README.md"

sys.path.insert(0, str(CHECKOUT))

from bwarp.options.configuration import SETTINGS, TASKS  # noqa: E402

#: The marker before a table, and the table.
TABLE = re.compile(r"^(<!-- keys of (\w+), .*? -->\n)((?:\|.*\n)*)", re.MULTILINE)


def main():
    before = PAGE.read_text()
    text = TABLE.sub(lambda found: found[1] + table(found[2]), before)
    if "--check" in sys.argv[1:]:
        sys.exit(0 if text == before else f"{PAGE} is old: python docs/{Path(__file__).name}")
    PAGE.write_text(text)


def table(name: str) -> str:
    """Return the table of a section; `all` is the table of keys outside sections."""
    if name == "all":
        rows = [option.row("") for option in SETTINGS]
    else:
        rows = [option.row(f"{name}.") for option in TASKS[name].keys]
    lines = ["| key | default | value | effect |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(cells)} |" for cells in rows]) + "\n"


if __name__ == "__main__":
    main()
