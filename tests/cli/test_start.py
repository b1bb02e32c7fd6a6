"""Programs whose functions are stored do not import Numba, which takes longer than a short run."""

import subprocess
import sys

import pytest

from tests.helpers.first_use.small_data import write_data

#: With --debug, the program returns.
RUN = """
import sys
from bwarp.cli.main import main
sys.argv = ["bwarp", *sys.argv[1:], "--debug", "--backend", "cpu"]
main()
print(*("numba" in sys.modules, "xopen" in sys.modules))
"""

#: The first line makes the index of the others.
LINES = (
    "index genome.fa -o index",
    "map --index index -1 short.1.fq -2 short.2.fq -o pairs.bam --sort",
    "allmap --index index --edits 4 -1 short.fq -o all.bam",
    "seeds --index index --queries words.fa -o words.tsv -k 20",
)


@pytest.mark.timeout(900)
def test_a_second_run_imports_neither_numba_nor_xopen(tmp_path):
    write_data(tmp_path)
    for line in LINES:
        for _ in range(2):
            done = subprocess.run(
                [sys.executable, "-c", RUN, *line.split()], cwd=tmp_path, capture_output=True,
                text=True, check=True,
            )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "False False", line


def test_programs_that_map_no_reads_do_not_import_the_mapper():
    code = (
        "import sys; from bwarp.cli.commands import find_mems, find_seeds, index_reference; "
        "print('bwarp.cli.options' in sys.modules, 'bwarp.mapping.pipeline' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
