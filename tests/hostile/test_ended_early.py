"""Programs ended at random points: the next run needs no cleanup and gives the same bytes.

More points: BWARP_EXAMPLES=2000 pytest tests/hostile
"""

import os
import random
import shutil
import signal
import time

import numpy as np
import pytest

from tests.helpers.programs.programs_here import SCRIPTS

POINTS = int(os.environ.get("BWARP_EXAMPLES", 40)) // 20

ONE = ("--threads", "2", "--backend", "cpu")

PROGRAMS = {
    "index": ("index_reference.py", "g.fa", "-o", "out/i"),
    "sorted bam": ("map_reads.py", "--index", "i", "-1", "r.fq", "-o", "out/o.bam", "--sort",
                   "--stats", "out/o.stats.json"),
    "cram": ("map_reads.py", "--index", "i", "-1", "r.fq", "-o", "out/o.cram", "--sort"),
    "seeds": ("find_seeds.py", "--index", "i", "--queries", "r.fq", "-o", "out/o.tsv.gz",
              "-k", "20", "--mismatches", "1"),
    "parquet": ("find_mems.py", "--index", "i", "--queries", "r.fq", "-o", "out/o.parquet"),
    "database": ("index_database.py", "p.fa", "-o", "out/d"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, program_servers):
    folder = tmp_path_factory.mktemp("ended")
    letters = np.random.default_rng(3).choice(list(b"ACGT"), 200_000).astype(np.uint8).tobytes()
    (folder / "g.fa").write_bytes(b">g\n%b\n" % letters)
    reads = [letters[at : at + 100] for at in range(0, 199_000, 50)]
    (folder / "r.fq").write_bytes(
        b"".join(b"@r%d\n%b\n+\n%b\n" % (i, read, b"I" * 100) for i, read in enumerate(reads))
    )
    proteins = b"".join(b">p%d\n%b\n" % (i, read) for i, read in enumerate(reads))
    (folder / "p.fa").write_bytes(proteins)
    words = [SCRIPTS / "index_reference.py", "g.fa", "-o", "i", "--with-reverse", *ONE]
    assert next(program_servers).run(words, cwd=folder)[0] == 0
    return folder


def contents(folder):
    """Return the bytes of all files in a folder, including hidden ones."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("what", PROGRAMS)
def test_ended_anywhere(folder, program_servers, what):
    script, *arguments = PROGRAMS[what]
    output = folder / "out"
    chance = random.Random(what)

    def run(end=None):
        words = [SCRIPTS / script, *arguments, *ONE]
        return next(program_servers).run(words, cwd=folder, end=end)

    shutil.rmtree(output, ignore_errors=True)
    output.mkdir()
    assert run()[0] == 0
    start = time.monotonic()
    assert run()[0] == 0
    taken = time.monotonic() - start
    expected = contents(output)
    stopped = 0
    for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
        for _ in range(POINTS):
            shutil.rmtree(output)
            output.mkdir()
            # Python itself handles Ctrl-C during its start.
            least = 0.05 if number == signal.SIGINT else 0
            rc, _, said = run((number, chance.uniform(least, taken)))
            found = contents(output)
            if rc == 0:
                assert found == expected
                continue
            stopped += 1
            visible = {name for name in found if not name.startswith(".")}
            assert visible <= set(expected), (rc, found)
            assert all(found[name] == expected[name] for name in visible)
            if number == signal.SIGKILL:
                assert rc == -signal.SIGKILL
            elif rc == -signal.SIGTERM == -number:  # before the program had begun
                assert found == {}
            else:
                assert rc == 128 + number, said
                assert not [name for name in found if name.startswith(".")], said
                assert "Traceback" not in said
                assert "Exception ignored" not in said
        rc, _, said = run()
        assert rc == 0, said
        assert contents(output) == expected
    assert stopped
