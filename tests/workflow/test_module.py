"""The workflow as a module of another one, as shown in docs/gpu-and-cluster.md."""

import hashlib
import re
import subprocess

import pysam
import pytest

from tests.helpers.cases.small_genome import write_genome

READ_START = 1000


@pytest.fixture(scope="module")
def copy(make_copy):
    return make_copy(forks=True)


@pytest.fixture(scope="module")
def blocks(checkout):
    """Return Snakefile, configuration, module with a prefix, changed rule, and a repository."""
    page = (checkout / "docs/gpu-and-cluster.md").read_text()
    section = page[page.index("## Inside another workflow") :]
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", section, re.MULTILINE)
    blocks = [re.sub(r"^    ", "", block, flags=re.MULTILINE) for block in blocks]
    assert len(blocks) == 5
    return [block.strip() + "\n" for block in blocks]


@pytest.fixture
def folder(copy, blocks, tmp_path):
    """Make a folder with a clone, a gzipped genome, one read, and the page's configuration."""
    (tmp_path / "bwarp").symlink_to(copy.folder)
    genome = write_genome(tmp_path / "genome.fa", 5_000)
    read = genome.read_text().splitlines()[1][READ_START : READ_START + 100]
    (tmp_path / "downloads").mkdir()
    with open(tmp_path / "downloads/genome.fa.gz", "wb") as file:
        subprocess.run(["gzip", "-c", genome], stdout=file, check=True)
    genome.unlink()
    (tmp_path / "reads.fq").write_text(f"@read\n{read}\n+\n{read}\n")
    (tmp_path / "samples.tsv").write_text("sample\tfq1\nliver\treads.fq\n")
    (tmp_path / "config.yaml").write_text(blocks[1])
    return tmp_path


def check_results(folder, results):
    """Check that the read maps to its origin, and that rules around the module have run."""
    bam = folder / results / "map/liver.bam"
    with pysam.AlignmentFile(bam) as file:
        (read,) = file
    assert (read.reference_name, read.reference_start) == ("one", READ_START)
    (digest, named) = (folder / "liver.md5").read_text().split()
    assert digest == hashlib.md5(bam.read_bytes()).hexdigest()
    assert named == f"{results}/map/liver.bam"
    assert (folder / "genome.fa").is_file()
    assert (folder / results / "qc/multiqc.html").is_file()


def test_the_example(copy, blocks, folder):
    (folder / "Snakefile").write_text(f"{blocks[0]}\n{blocks[3]}")
    assert "threads: 32" in copy.snakemake("-n", "--cores", 64, cwd=folder)
    copy.snakemake("--cores", 2, cwd=folder)
    check_results(folder, "results")
    assert "Nothing to be done" in copy.snakemake("--cores", 2, cwd=folder)
    copy.snakemake("--report", "all.html", cwd=folder)
    assert "equally likely elsewhere" in (folder / "all.html").read_text()


def test_results_are_under_a_prefix(copy, blocks, folder):
    example, module = blocks[0], blocks[2]
    bare = example[example.index("module bwarp:") : example.index("use rule")]
    example = example.replace(bare, module + "\n").replace('"results/', '"mapping/results/')
    (folder / "Snakefile").write_text(example)
    before = {path.name for path in folder.iterdir()}
    copy.snakemake("--cores", 2, cwd=folder)
    check_results(folder, "mapping/results")
    made = {path.name for path in folder.iterdir()} - before
    assert made == {"mapping", "genome.fa", "liver.md5", ".snakemake"}
    assert {path.name for path in (folder / "mapping").iterdir()} == {"results", "logs"}


def test_every_target_under_a_prefix(copy, folder):
    for name in ("genome.fa", "primers.fa", "guides.fa", "regions.bed", "pairs.tsv", "database.fa"):
        (folder / name).write_text(">a\nACGT\n")
    (folder / "config.yaml").write_text("""\
reference: genome.fa
samples: samples.tsv
allmap: {edits: 2, report: best, batch_size: 1}
seeds: {queries: primers.fa, k: whole}
offtargets: {guides: guides.fa}
guides: {bed: regions.bed}
primers: {pairs: pairs.tsv}
mems: {queries: primers.fa}
scan: {queries: primers.fa, similarity: 0.9}
pairs: {queries: primers.fa, references: genome.fa}
search: {queries: primers.fa, database: database.fa}
""")
    (folder / "Snakefile").write_text("""\
configfile: "config.yaml"
module bwarp:
    snakefile: "bwarp/workflow/Snakefile"
    prefix: "here"
    config: config
use rule * from bwarp
""")
    targets = (
        "all",
        "map",
        "allmap",
        "qc",
        "seeds",
        "offtargets",
        "guides",
        "primers",
        "mems",
        "scan",
        "pairs",
        "search",
    )
    said = copy.snakemake("-n", *targets, cwd=folder)
    paths = re.findall(r"^ +(input|output|log|benchmark): (.*)$", said, re.MULTILINE)
    given = {"genome.fa", "reads.fq", "primers.fa", "guides.fa", "regions.bed", "pairs.tsv"}
    given.add("database.fa")
    # The names of batches are not known before batches exist.
    given.add("<TBD>")
    made = {path for kind, line in paths for path in line.split(", ") if path not in given}
    assert len(made) > 30
    assert {path.split("/")[0] for path in made} == {"here"}
    assert given <= {path for kind, line in paths for path in line.split(", ") if kind == "input"}


def test_the_demo_under_a_prefix(copy, tmp_path):
    (tmp_path / "Snakefile").write_text(f"""\
module bwarp:
    snakefile: {str(copy / "workflow/Snakefile")!r}
    prefix: "here"
    config: {{"reference": "resources/demo/demo.fa.gz", "samples": "samples.tsv"}}
use rule * from bwarp as bwarp_*
""")
    reads = [f"resources/demo/reads_{mate}.fq.gz" for mate in "12"]
    (tmp_path / "samples.tsv").write_text("sample\tfq1\tfq2\ns\t{}\t{}\n".format(*reads))
    said = copy.snakemake("-np", "bwarp_map", cwd=tmp_path)
    assert "output: here/resources/demo/demo.fa.gz\n" in said
    assert f" -1 here/{reads[0]} -2 here/{reads[1]} --sort" in said


def test_modules_for_two_genomes(copy, folder):
    (folder / "reads.fq").unlink()
    for name in ("human", "mouse"):
        (folder / f"{name}.fa").write_text(">a\nACGT\n")
    (folder / "Snakefile").write_text(
        'rule sequence:\n    output: "reads.fq"\n    shell: "exit 1"\n'
        + "".join(
            f"""
module {name}:
    snakefile: "bwarp/workflow/Snakefile"
    prefix: "{name}"
    config: {{"reference": "{name}.fa", "samples": "samples.tsv"}}
use rule * from {name} as {name}_*
"""
            for name in ("human", "mouse")
        )
    )
    said = copy.snakemake("-n", "human_map", "mouse_map", cwd=folder)
    assert "rule sequence:\n    output: reads.fq\n" in said
    for name in ("human", "mouse"):
        assert f"    output: {name}/results/map/liver.bam, " in said
        assert f"    input: {name}.fa\n    output: {name}/results/index/{name}, " in said


def test_a_module_alone_makes_what_bwarp_makes(copy, folder):
    (folder / "genome.fa").write_text(">a\nACGT\n")
    (folder / "Snakefile").write_text("""\
configfile: "config.yaml"
module bwarp:
    snakefile: "bwarp/workflow/Snakefile"
    config: config["bwarp"]
use rule * from bwarp as bwarp_*
""")
    said = copy.snakemake("-n", cwd=folder)
    assert "rule bwarp_all:" in said
    assert "rule bwarp_map_reads:" in said
    assert "directive" not in said


@pytest.fixture(scope="module")
def repository(copy):
    """Make Snakemake's clone of a repository with the rules, and nothing to clone it from."""
    cached = copy.folder.parent / "cache/snakemake/snakemake/source-cache/snakemake-git-cache"
    clone = cached / "github.com/OWNER/bwarp"
    git = ("git", "-C", copy.folder, "-c", "user.name=a", "-c", "user.email=a@b")
    init = copy / "bwarp/__init__.py"
    text = init.read_text()
    subprocess.run(["git", "init", "-q", "-b", "main", copy.folder], check=True)
    for tag in ("v0.1.0", "v9.9.9"):
        init.write_text(text.replace("0.1.0", tag[1:]))
        subprocess.run([*git, "add", "workflow", "bwarp/__init__.py"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", tag], check=True)
        subprocess.run([*git, "tag", tag], check=True)
    init.write_text(text)
    subprocess.run(["git", "clone", "-q", "--bare", copy.folder, clone], check=True)
    return clone


@pytest.fixture
def of_a_repository(repository, folder, blocks):
    """Use the page's module of a repository in the folder, without a clone there."""
    (folder / "bwarp").unlink()
    example = blocks[0].replace('"bwarp/workflow/Snakefile"', blocks[4].strip())
    assert "github(" in example
    (folder / "Snakefile").write_text(example)
    return folder


def test_a_module_from_a_repository(copy, of_a_repository):
    """Jobs run the installed bwarp."""
    copy.snakemake("--cores", 2, cwd=of_a_repository)
    check_results(of_a_repository, "results")
    assert "Nothing to be done" in copy.snakemake("--cores", 2, cwd=of_a_repository)
    said = copy.snakemake("-np", "--forceall", "--sdm", "conda", cwd=of_a_repository)
    assert "\nShell command: python -P -m bwarp map --index " in said
    assert "conda env" not in said.lower()


def test_a_module_of_another_version(copy, of_a_repository):
    snakefile = of_a_repository / "Snakefile"
    snakefile.write_text(snakefile.read_text().replace("v0.1.0", "v9.9.9"))
    said = copy.snakemake("-n", cwd=of_a_repository, rc=2)
    assert said.endswith(
        "Nothing was run: the rules are those of bwarp 9.9.9, and bwarp 0.1.0 is installed: type "
        "pip install 'bwarp[workflow]==9.9.9'.\n"
    )


def test_a_module_from_a_repository_without_an_installed_bwarp(copy, of_a_repository):
    program = of_a_repository / "without.py"
    program.write_text(
        "import sys\nfrom snakemake.cli import main\nsys.modules['bwarp'] = None\nmain(['-n'])\n"
    )
    rc, said, _ = copy.server.run(
        [program], cwd=of_a_repository, environment=copy.environment, merged=True
    )
    assert rc == 2
    assert said.endswith(
        "Nothing was run: the rules are read from a repository, and bwarp is not installed: type "
        "pip install 'bwarp[workflow]==0.1.0'.\n"
    )


def test_a_module_by_the_address_of_a_local_repository(copy, repository, folder):
    (folder / "Snakefile").write_text(f"""\
module bwarp:
    snakefile: "git+file://{copy.folder}/workflow/Snakefile@main"
    config: {{"reference": "genome.fa"}}
use rule * from bwarp as bwarp_*
""")
    said = copy.snakemake("-n", cwd=folder, rc=2)
    assert said.endswith(
        "Nothing was run: a module of bwarp cannot be git+file: use the path of a clone, or "
        "github(...).\n"
    )
