"""The wrappers in integrations/snakemake-wrappers run from a local prefix, as in their examples."""

import subprocess
import sys

import pysam
import pytest
import yaml

import bwarp

WRAPPERS = "integrations/snakemake-wrappers"
TASKS = ("index", "map")

# One rule per case; the values of the parameters are filled in.
RULE = """
rule {name}:
    input:
        reads={reads!r},
        idx="genome.index",
    output:
        "{name}.bam",
    log:
        "{name}.log",
    params:
        extra="--backend cpu",
        {params}
    wrapper:
        "master/bio/bwarp/map"
"""
BOTH = ["reads/a.1.fastq", "reads/a.2.fastq"]


@pytest.fixture(scope="module")
def snakemake(folder, environment, checkout):
    """Return a function that runs Snakemake with the local wrappers, after building the index."""
    (folder / "prefix").mkdir()
    (folder / "prefix/master").symlink_to(checkout / WRAPPERS)

    def run(snakefile, *targets) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "snakemake", "--snakefile", snakefile, "--cores", 2]
        prefix = ["--wrapper-prefix", f"file://{folder}/prefix/", "--show-failed-logs", *targets]
        return subprocess.run(
            [str(word) for word in command + prefix],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )

    built = run(checkout / WRAPPERS / "bio/bwarp/index/test/Snakefile", "genome.index")
    assert built.returncode == 0, built.stderr
    return run


def records(path) -> tuple[dict, list[str]]:
    """Return the header and the records of a file; each read must be where it is from."""
    with pysam.AlignmentFile(path) as file:
        reads = list(file)
        header = file.header.to_dict()
    assert reads
    assert all(read.reference_name == "one" for read in reads)
    assert all(read.reference_start == int(read.query_name) for read in reads if not read.is_read2)
    return header, [read.to_string() for read in reads]


@pytest.mark.usefixtures("samtools")
def test_the_examples(snakemake, folder, checkout):
    example = checkout / WRAPPERS / "bio/bwarp/map/test/Snakefile"
    targets = ("mapped/a.bam", "sorted/a.cram", "by_name/a.bam")
    finished = snakemake(example, *targets)
    assert finished.returncode == 0, finished.stderr
    assert "reads" in (folder / "logs/bwarp_map/a.log").read_text()
    plain, mapped = records(folder / "mapped/a.bam")
    assert plain["RG"] == [{"ID": "a", "SM": "a"}]
    assert len(mapped) == 40
    by_position, arranged = records(folder / "sorted/a.cram")
    assert by_position["HD"]["SO"] == "coordinate"
    names = sorted(text.split("\t")[0] for text in mapped)
    assert sorted(text.split("\t")[0] for text in arranged) == names
    by_name, single = records(folder / "by_name/a.bam")
    assert by_name["HD"]["SO"] == "queryname"
    assert len(single) == 20


@pytest.mark.usefixtures("samtools")
def test_all_sortings_give_the_same_records(snakemake, folder):
    cases = {
        "none": "",
        "own": "sorting='bwarp'",
        "samtools": "sorting='samtools', sort_extra='-l 1'",
        "picard": "sorting='picard', sort_extra='--COMPRESSION_LEVEL 1'",
        "fgbio": "sorting='fgbio', sort_order='queryname'",
    }
    rules = (RULE.format(name=name, params=text, reads=BOTH) for name, text in cases.items())
    (folder / "sortings.smk").write_text("".join(rules))
    (folder / "sorters.txt").write_text("")
    finished = snakemake("sortings.smk", *(f"{name}.bam" for name in cases))
    assert finished.returncode == 0, finished.stderr
    _, expected = records(folder / "none.bam")
    orders = {}
    for name in cases:
        header, mapped = records(folder / f"{name}.bam")
        assert sorted(mapped) == sorted(expected), name
        orders[name] = header["HD"].get("SO")
    assert orders.pop("fgbio") == "queryname"
    assert orders.pop("none") in (None, "unsorted", "unknown")
    assert set(orders.values()) == {"coordinate"}
    assert (folder / "own.bam.bai").is_file()
    called = sorted((folder / "sorters.txt").read_text().splitlines())
    assert called[0].startswith("fgbio --tmp-dir ")
    assert called[0].endswith("--output fgbio.bam --sort-order Queryname")
    assert called[1].startswith("picard SortSam --COMPRESSION_LEVEL 1 --INPUT /dev/stdin ")
    assert "--SORT_ORDER coordinate --TMP_DIR /" in called[1]


@pytest.mark.parametrize(
    ("reads", "params", "said"),
    [
        ([*BOTH, BOTH[0]], "", "input.reads must be one or two files, but there are 3."),
        (BOTH, "sorting='sambamba'", "params.sorting must be one of none, bwarp, samtools,"),
        (
            BOTH,
            "sorting='bwarp', sort_order='queryname'",
            "params.sort_order must be coordinate with sorting 'bwarp', not 'queryname'.",
        ),
    ],
)
def test_unusable_parameters_are_refused(snakemake, folder, reads, params, said):
    (folder / "refused.smk").write_text(RULE.format(name="refused", params=params, reads=reads))
    finished = snakemake("refused.smk", "refused.bam")
    assert finished.returncode == 1
    assert said in finished.stderr
    assert not (folder / "refused.bam").exists()


@pytest.mark.parametrize("task", TASKS)
def test_descriptions(checkout, task):
    wrapper = checkout / WRAPPERS / "bio/bwarp" / task
    meta = yaml.safe_load((wrapper / "meta.yaml").read_text())
    assert meta["name"] == f"bwarp {task}"
    assert {"description", "url", "authors", "input", "output", "params", "notes"} <= meta.keys()
    environment = yaml.safe_load((wrapper / "environment.yaml").read_text())
    assert environment["channels"] == ["conda-forge", "bioconda", "nodefaults"]
    assert f"bwarp ={bwarp.__version__}" in environment["dependencies"]
    read = (wrapper / "wrapper.py").read_text()
    declared = {text for name in meta["params"] for text in name}
    for name in declared:
        assert f'params.get("{name}"' in read
