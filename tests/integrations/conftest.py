"""A small genome, pairs of reads named by their positions, and programs on the path."""

import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.cases.small_genome import write_genome

PAIRS = 20
READ_LENGTH = 100
INSERT_SIZE = 300

# Sorts as picard and fgbio do, and notes how it was called.
SORTER = """#!/bin/bash
set -euo pipefail
echo "$(basename $0) $*" >> sorters.txt
while [ $# -gt 0 ]; do
    case $1 in --OUTPUT|--output) output=$2 ;; --SORT_ORDER|--sort-order) order=$2 ;; esac
    shift
done
[ ${order,,} = queryname ] && by_name=-n || by_name=
samtools sort $by_name -o "$output" /dev/stdin
"""


def write_pairs(genome: Path, folder: Path):
    """Write pairs, each named by the position of its first read, in the contig `one`."""
    bases = genome.read_text().splitlines()[1]
    complement = str.maketrans("ACGT", "TGCA")
    folder.mkdir()
    starts = np.random.default_rng(2).integers(0, len(bases) - INSERT_SIZE, PAIRS)
    with open(folder / "a.1.fastq", "w") as first, open(folder / "a.2.fastq", "w") as second:
        for start in starts:
            insert = bases[start : start + INSERT_SIZE]
            mate = insert.translate(complement)[::-1]
            for file, read in ((first, insert), (second, mate)):
                file.write(f"@{start}\n{read[:READ_LENGTH]}\n+\n{'I' * READ_LENGTH}\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("integration")
    write_pairs(write_genome(folder / "genome.fasta", 20_000), folder / "reads")
    (folder / "bin").mkdir()
    for name in ("picard", "fgbio"):
        (folder / "bin" / name).write_text(SORTER)
        (folder / "bin" / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def environment(folder, checkout) -> dict:
    """Return an environment in which `bwarp` is that of this checkout."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.defpath])
    return os.environ | {"PATH": path, "PYTHONPATH": str(checkout)}


@pytest.fixture(scope="module")
def samtools(environment) -> None:
    """Skip tests that run samtools where it is not installed."""
    if shutil.which("samtools", path=environment["PATH"]) is None:
        pytest.skip("samtools is not installed")
