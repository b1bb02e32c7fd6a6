"""The modules in integrations/nf-core: their commands run in bash, and their descriptions agree.

Nextflow is not needed: the test takes the script out of main.nf, fills in its variables as
Nextflow does, and runs it.
"""

import re
import subprocess

import pysam
import pytest
import yaml

import bwarp

MODULES = "integrations/nf-core/modules/bwarp"
TASKS = ("index", "map")
READ_GROUP = r'"@RG\tID:a.1\tPU:1\tSM:patient_a\tLB:a\tDS:genome.fasta\tPL:ILLUMINA"'
SAREK = f"-K 100000000 -Y -R {READ_GROUP}"


class Process:
    """The text of a main.nf."""

    def __init__(self, text: str):
        self.text = text

    def block(self, name: str) -> str:
        """Return the definitions and the script of the block `script` or `stub`."""
        return re.search(rf'\n    {name}:\n(.*?\n    """\n.*?\n    """\n)', self.text, re.DOTALL)[1]

    def texts(self, name: str) -> list[str]:
        """Return the quoted texts from which the definition of a variable selects."""
        block = self.block("script")
        line = re.search(rf"\n    def {name} *=(.*(?:\n        [?:].*)*)", block)[1]
        return re.findall(r'"([^"]*)"', line)

    def command(self, name: str, values: dict) -> str:
        """Return the command of a block: values replace `${name}`, and `\\` escapes."""
        script = re.search(r'"""\n(.*?)    """', self.block(name), re.DOTALL)[1]
        unindented = re.sub(r"^    ", "", script, flags=re.MULTILINE)
        return re.sub(r"\\([\\$])", r"\1", filled(unindented, values))


def filled(text: str, values: dict) -> str:
    return re.sub(r"(?<!\\)\$\{(.*?)\}", lambda found: values[found[1]], text)


@pytest.fixture(scope="module")
def processes(checkout):
    return {task: Process((checkout / MODULES / task / "main.nf").read_text()) for task in TASKS}


@pytest.fixture(scope="module")
def bash(folder, environment):
    def run(command: str):
        strict = ["bash", "-euo", "pipefail", "-c", command]
        finished = subprocess.run(
            strict, cwd=folder, env=environment, capture_output=True, text=True
        )
        assert finished.returncode == 0, finished.stderr

    return run


@pytest.fixture(scope="module")
def index(processes, bash, folder):
    """Build the index with the script of the module."""
    values = {"args": "--backend cpu", "prefix": "genome", "fasta": "genome.fasta"}
    common = {"task.cpus": "1", "task.process": "SAREK:BWARP_INDEX"}
    bash(processes["index"].command("script", values | common))
    versions = yaml.safe_load((folder / "versions.yml").read_text())
    assert versions == {"SAREK:BWARP_INDEX": {"bwarp": bwarp.__version__}}
    return folder / "bwarp"


def map_values(process: Process, reads, suffix="bam", args2="", sort=True) -> dict:
    """Return the values of the variables of the script of bwarp/map."""
    values = {
        "args": SAREK,
        "args2": args2,
        "prefix": "a.sorted",
        "suffix": suffix,
        "reference": filled(*process.texts("reference"), {"fasta": "genome.fasta"})
        if suffix == "cram"
        else "",
        "samtools": "sort" if sort else "view",
        "sort": "--sort" if sort else "",
        "task.cpus": "2",
        "task.process": "SAREK:BWAMEM1_MEM",
    }
    (paired, single) = process.texts("input")
    if len(reads) == 2:
        values["input"] = filled(paired, {"reads[0]": reads[0], "reads[1]": reads[1]})
    else:
        values["input"] = filled(single, {"reads": reads[0]})
    (by_samtools, alone) = process.texts("output")
    values["output"] = filled(by_samtools if args2 else alone, values)
    return values


@pytest.mark.usefixtures("samtools")
@pytest.mark.parametrize(
    ("n_files", "suffix", "args2", "sort", "order", "index_file"),
    [
        (2, "bam", "", True, "coordinate", "a.sorted.bam.bai"),
        (1, "bam", "", True, "coordinate", "a.sorted.bam.bai"),
        (2, "cram", "", True, "coordinate", "a.sorted.cram.crai"),
        (2, "bam", "-n", True, "queryname", None),
        (2, "bam", "", False, None, None),
    ],
)
def test_the_script_maps(
    processes, bash, folder, index, n_files, suffix, args2, sort, order, index_file
):
    process = processes["map"]
    for old in folder.glob("a.sorted.*"):
        old.unlink()
    reads = [f"reads/a.{i}.fastq" for i in (1, 2)][:n_files]
    bash(process.command("script", map_values(process, reads, suffix, args2, sort)))
    with pysam.AlignmentFile(folder / f"a.sorted.{suffix}", check_sq=False) as file:
        mapped = list(file)
        header = file.header.to_dict()
    assert len(mapped) == 20 * n_files
    assert all(read.reference_start == int(read.query_name) for read in mapped if not read.is_read2)
    (group,) = header["RG"]
    assert (group["ID"], group["SM"], group["PL"]) == ("a.1", "patient_a", "ILLUMINA")
    if order:
        assert header["HD"]["SO"] == order
    written = {path.name for path in folder.glob("a.sorted.*")}
    assert written == {f"a.sorted.{suffix}"} | ({index_file} if index_file else set())
    (versions,) = yaml.safe_load((folder / "versions.yml").read_text()).values()
    assert versions["bwarp"] == bwarp.__version__
    assert re.fullmatch(r"1\.\d+.*", str(versions["samtools"]))


@pytest.mark.parametrize("task", TASKS)
def test_the_stub_makes_the_outputs(processes, bash, folder, task):
    values = {"prefix": "stub", "suffix": "cram", "index_suffix": "crai", "task.process": "STUB"}
    bash(processes[task].command("stub", values))
    made = {"index": ["bwarp/stub.index/index.json"], "map": ["stub.cram", "stub.cram.crai"]}
    for name in made[task]:
        assert (folder / name).is_file()
        (folder / name).unlink()
    if task == "index":
        (folder / "bwarp/stub.index").rmdir()


@pytest.mark.parametrize("task", TASKS)
def test_descriptions_agree_with_the_process(processes, checkout, task):
    text = processes[task].text
    meta = yaml.safe_load((checkout / MODULES / task / "meta.yml").read_text())
    assert meta["name"] == f"bwarp_{task}"
    assert f"process BWARP_{task.upper()} {{" in text
    assert len(set(meta["keywords"])) >= 3
    assert meta["authors"]
    assert meta["maintainers"]
    (tool,) = meta["tools"]
    assert re.match("https://", tool["bwarp"]["homepage"])
    assert tool["bwarp"]["licence"] == ["MIT"]
    inputs = re.search(r"input:\n(.*?)\n\n", text, re.DOTALL)[1]
    declared = [re.findall(r"(?:val|path)\W(\w+)", line) for line in inputs.splitlines()]
    assert [[name for item in group for name in item] for group in meta["input"]] == declared
    emitted = re.findall(r"emit: (\w+)", text)
    assert [name for item in meta["output"] for name in item] == emitted
    elements = [item for group in meta["input"] for item in group]
    elements += [item for output in meta["output"] for value in output.values() for item in value]
    for element in elements:
        for value in element.values():
            assert value["type"] in ("map", "file", "directory", "boolean")
            assert value["description"]
    for brackets in ("()", "{}", "[]"):
        assert text.count(brackets[0]) == text.count(brackets[1])


@pytest.mark.parametrize("task", TASKS)
def test_versions_are_that_of_the_package(processes, checkout, task):
    environment = yaml.safe_load((checkout / MODULES / task / "environment.yml").read_text())
    assert environment.keys() == {"channels", "dependencies"}
    assert environment["channels"] == ["conda-forge", "bioconda"]
    assert f"bioconda::bwarp={bwarp.__version__}" in environment["dependencies"]
    images = re.findall(r"/bwarp:([\d.]+)--", processes[task].text)
    assert images == [bwarp.__version__] * 2


@pytest.mark.parametrize("task", TASKS)
def test_nf_tests_name_outputs_that_exist(processes, checkout, task):
    tests = checkout / MODULES / task / "tests"
    text = (tests / "main.nf.test").read_text()
    assert set(re.findall(r"process\.out\.(\w+)", text)) <= set(
        re.findall(r"emit: (\w+)", processes[task].text)
    )
    assert 'options "-stub"' in text
    for name in re.findall(r'config "\./(.*)"', text):
        assert (tests / name).is_file()
    for brackets in ("()", "{}", "[]"):
        assert text.count(brackets[0]) == text.count(brackets[1])
