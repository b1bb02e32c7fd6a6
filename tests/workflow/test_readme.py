"""Every command that the front pages tell a user to type works, and every link leads somewhere."""

import re
import shlex
import subprocess
import sys

import pytest
from small_genome import write_genome

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "config/README.md",
    "docs/index.md",
    "docs/report.md",
    "docs/gpu-and-cluster.md",
)


def commands(checkout, page):
    """The lines of the ```sh blocks of a page, split into words, comments left out."""
    blocks = re.findall(
        r"^```sh\n(.*?)^```", (checkout / page).read_text(), re.MULTILINE | re.DOTALL
    )
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.fixture(scope="module")
def copy(make_copy):
    copy = make_copy()
    write_genome(copy / "my_genome.fa", 5_000)
    (copy / "my_config.yaml").write_text("reference: my_genome.fa\n")
    return copy


@pytest.mark.parametrize("page", PAGES)
def test_commands(checkout, copy, program_servers, page):
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
        elif program == "python":
            rc, said, _ = next(program_servers).run(words[1:], cwd=copy.folder, merged=True)
            assert rc == 0, f"{shlex.join(words)}\n{said}"
        else:
            pytest.fail(f"{page} tells to run {words[0]}, which this test does not know")


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
    for program in (checkout / "scripts").glob("*.py"):
        assert program.name in index, program.name


def test_the_speed_table_shows_the_results(checkout):
    command = [sys.executable, checkout / "benchmarks/speed_table.py", "--check"]
    subprocess.run(command, check=True)


def test_every_page_of_the_documentation_is_listed(checkout):
    index = (checkout / "docs/index.md").read_text()
    for page in (checkout / "docs").glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page.name
