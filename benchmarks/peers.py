#!/usr/bin/env python3
"""List the programs that bwarp is compared with: versions, and those that are not installed.

    python benchmarks/peers.py

One JSON line per program; the version of a program that is not installed is null.
"""

from frame.options import new_parser, read_options
from frame.peers import PEERS, version_of
from frame.results import overwrite


def main():
    options = read_options(new_parser(__doc__), "peers.jsonl")
    overwrite(
        options.output,
        ({"peer": name, "version": version_of(name), "from": PEERS[name].source} for name in PEERS),
    )


if __name__ == "__main__":
    main()
