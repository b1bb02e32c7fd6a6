"""The workflow in a separate folder, from a clone that may be read-only, or as a module."""

import os
import re
import shutil
import subprocess
import sys

import pysam
import pytest

from tests.helpers.cases.small_genome import write_genome


@pytest.fixture(scope="module")
def read_only(make_copy):
    """Make a copy on a read-only disk, if this process may mount one."""
    copy = make_copy("read only")
    bind = ["mount", "--bind", copy.folder, copy.folder]
    if shutil.which("mount") is None or subprocess.run(bind, check=False).returncode:
        pytest.skip("needs the right to mount")
    subprocess.run(["mount", "-o", "remount,ro,bind", copy.folder], check=True)
    yield copy
    subprocess.run(["umount", copy.folder], check=True)


@pytest.fixture
def folder(tmp_path):
    """Make a folder with a genome, two samples, one of them with two lanes, and the sheet."""
    letters = write_genome(tmp_path / "genome.fa", 5_000).read_text().splitlines()[1]
    for number, name in enumerate(("liver1", "liver2", "brain")):
        read = letters[1000 * number : 1000 * number + 100]
        (tmp_path / f"{name}.fq").write_text(f"@{name}\n{read}\n+\n{'I' * 100}\n")
    (tmp_path / "samples.csv").write_text(
        "sample,unit,fq1\nliver,1,liver1.fq\nliver,2,liver2.fq\nbrain,1,brain.fq\n"
    )
    return tmp_path


def check_results(results):
    for sample, starts in (("liver", [0, 1000]), ("brain", [2000])):
        with pysam.AlignmentFile(results / f"map/{sample}.bam") as file:
            assert [record.reference_start for record in file] == starts


def test_a_clone_that_is_read_only(read_only, folder):
    with pytest.raises(OSError, match="Read-only"):
        (read_only / "x").touch()
    names = {path.name for path in folder.iterdir()}
    config = ("--config", "reference=genome.fa", "samples=samples.csv")
    snakefile = os.path.relpath(read_only / "workflow/Snakefile", folder)
    said = read_only.snakemake("map", "-s", snakefile, "--cores", 2, *config, cwd=folder)
    check_results(folder / "results")
    assert {path.name for path in folder.iterdir()} - names == {"results", "logs", ".snakemake"}
    assert re.search(r"^liver +2 +100\.00", said, re.MULTILINE)
    again = read_only.snakemake("map", "-s", snakefile, "--cores", 2, *config, cwd=folder)
    assert "Nothing to be done" in again


def test_a_module_whose_results_have_another_prefix(read_only, folder):
    (folder / "Snakefile").write_text(f"""\
module bwarp:
    snakefile: {str(read_only / "workflow/Snakefile")!r}
    replace_prefix: {{"results/": "mapping/", "logs/": "mapping/logs/"}}
    config: {{"reference": "genome.fa", "samples": "samples.csv"}}
use rule * from bwarp as bwarp_*
""")
    names = {path.name for path in folder.iterdir()}
    read_only.snakemake("bwarp_map", "--cores", 2, cwd=folder)
    check_results(folder / "mapping")
    assert {path.name for path in folder.iterdir()} - names == {"mapping", ".snakemake"}


def test_single_rules_of_the_page(checkout, tmp_path):
    """They index and map as shown in the page."""
    page = (checkout / "docs/gpu-and-cluster.md").read_text()
    section = page[page.index("## A single rule") : page.index("## Inside another workflow")]
    rules = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)
    (tmp_path / "Snakefile").write_text(re.sub("^    ", "", "".join(rules), flags=re.MULTILINE))
    letters = write_genome(tmp_path / "genome.fa", 5_000).read_text().splitlines()[1]
    for mate, start in ((1, 1000), (2, 2000)):
        read = letters[start : start + 100]
        (tmp_path / f"a_R{mate}.fq").write_text(f"@a\n{read}\n+\n{'I' * 100}\n")
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "a.bam"]
    bin_folder = os.path.dirname(sys.executable)
    environment = os.environ | {
        "PATH": f"{bin_folder}:{os.environ['PATH']}", "PYTHONPATH": str(checkout)
    }  # fmt: skip
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    with pysam.AlignmentFile(tmp_path / "a.bam") as file:
        assert [(r.reference_start, r.get_tag("RG")) for r in file] == [(1000, "a"), (2000, "a")]
