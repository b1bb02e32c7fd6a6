"""Every command that a page tells a user to type works, and every link leads somewhere."""

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from programs_here import run_here
from small_genome import write_genome

from bwarp.sequence import encode, pack

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "config/README.md"),
    *sorted(f"docs/{page.name}" for page in (CHECKOUT / "docs").glob("*.md")),
)

#: Lines that are commands, where they are indented and not in a ```sh block.
INDENTED = r"^    (?:python )?((?:scripts/\w+\.py|snakemake)(?:.*\\\n)*.*)$"


def commands(checkout, page):
    """The commands of a page, split into words, comments left out."""
    text = (checkout / page).read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    blocks += re.findall(INDENTED, text, re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.fixture(scope="module")
def copy(make_copy):
    """A copy of the checkout with files of all the names that the pages have."""
    copy = make_copy()
    write_genome(copy / "my_genome.fa", 5_000)
    (copy / "my_config.yaml").write_text("reference: my_genome.fa\n")
    write_sequences(copy.folder)
    index = (copy / "genome.fa", "-o", copy / "genome.index")
    assert run_here("index_reference", *index, folder=copy.folder).rc == 0
    return copy


def write_sequences(folder):
    genome = write_genome(folder / "genome.fa", 5_000).read_bytes()
    one, two = genome.split(b"\n")[1:4:2]
    names = [b"%s:%d" % (name, at) for at in range(0, 2000, 100) for name in (b"liver", b"brain")]
    reads = {
        mate: b"".join(
            b"@%s\n%s\n+\n%s\n" % (name, contig[i * 20 : i * 20 + 100], b"I" * 100)
            for i, name in enumerate(names)
        )
        for mate, contig in (("1", one), ("2", two))
    }
    proteins = (folder / "config/examples/proteins.fa").read_bytes()
    database = (folder / "config/examples/protein_database.fa").read_bytes()
    words = b"".join(b">w%d\n%s\n" % (i, one[i * 50 : i * 50 + 22]) for i in range(8))
    pair = one[:100]
    texts = {
        "reads.fq": reads["1"], "R1.fq": reads["1"], "R2.fq": reads["2"], "primers.fa": words,
        "mature.fa": words, "hairpin.fa": genome, "MG1655.fa": genome, "DH1.fa": genome,
        "R.fa": b">r\n%s\n" % pair, "Q.fa": b">q\n%s\n" % pair[10:60], "D.fa": database,
        "Q.fq": b"@q\n%s\n+\n%s\n" % (pair[10:60], b"I" * 50), "genome.fa": genome,
        "proteins.fa": proteins, "database.fa": database,
        "pairs.tsv": b"q\tMKVLA\tr\tMKVLAAG\n",
    }  # fmt: skip
    sheet = "sample\tunit\tfq1\tfq2\n"
    for unit in ("liver_L1", "liver_L2", "brain"):
        texts |= {f"{unit}_R{mate}.fq": reads[mate] for mate in "12"}
        sample, _, lane = unit.partition("_")
        sheet += f"{sample}\t{lane or 'L1'}\t{unit}_R1.fq.gz\t{unit}_R2.fq.gz\n"
    (folder / "my_samples.tsv").write_text(sheet)
    for name, text in texts.items():
        (folder / name).write_bytes(text)
        (folder / f"{name}.gz").write_bytes(gzip.compress(text))
    bases = encode(pair)
    np.savez(folder / "reads.npz", packed=pack(bases), starts=np.array([0, bases.size]))
    places = {"reads": np.array([0]), "starts": np.array([0]), "stops": np.array([150])}
    places |= {"strands": np.zeros(1, np.uint8), "max_edits": np.array([5], np.int32)}
    np.savez(folder / "candidates.npz", **places)


@pytest.mark.parametrize("page", PAGES)
def test_commands(checkout, copy, program_servers, monkeypatch, page):
    monkeypatch.chdir(copy.folder)
    for words in commands(checkout, page):
        program = words[0].removeprefix(".venv/bin/")
        if "config/examples" in words[-1]:
            continue  # test_targets.py runs every example
        if program == "make":
            command = [*words, "--directory", checkout, "-n"]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            assert process.returncode == 0, process.stderr
        elif program == "snakemake":
            # The programs have tests of their own; --executor because Slurm may not be here.
            copy.snakemake(*words[1:], "-n", "--executor", "local")
        elif program == "python" or program.startswith("scripts/"):
            rc, said = run_program_of_page(checkout, words[program == "python" :], program_servers)
            assert rc == 0, f"{shlex.join(words)}\n{said}"
        else:
            pytest.fail(f"{page} tells to run {words[0]}, which this test does not know")


def run_program_of_page(checkout, words, servers):
    """Exit code and what was said; in this process where that can be, which is quick."""
    script = checkout / words[0]
    if script.parent.name == "scripts" and "def parse_options" in script.read_text():
        done = run_here(script.stem, *words[1:], folder=".")
        return done.rc, done.said
    rc, said, _ = next(servers).run([script, *words[1:]], merged=True)
    return rc, said


def test_the_front_page_begins_with_make_run(checkout):
    assert commands(checkout, "README.md")[:2] == [["make", "run"], ["make", "test"]]


@pytest.mark.parametrize("page", PAGES)
def test_links(checkout, page):
    text = (checkout / page).read_text()
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if not target.startswith("http"):
            assert (checkout / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_every_program_is_listed(checkout):
    index = (checkout / "docs/index.md").read_text()
    for program in (checkout / "scripts").glob("[!_]*.py"):
        assert program.name in index, program.name


def test_the_speed_table_shows_the_results(checkout):
    command = [sys.executable, checkout / "benchmarks/speed_table.py", "--check"]
    subprocess.run(command, check=True)


def test_the_tables_of_choosing_show_the_results(checkout, program_servers):
    words = [checkout / "benchmarks/choosing.py", "--check"]
    rc, said, _ = next(program_servers).run(words, merged=True)
    assert rc == 0, said


def test_every_page_of_the_documentation_is_listed(checkout):
    index = (checkout / "docs/index.md").read_text()
    for page in (checkout / "docs").glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page.name
