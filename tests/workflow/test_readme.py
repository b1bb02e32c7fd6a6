"""Every command in the pages works, and every link is valid."""

import gzip
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from Bio.Align import substitution_matrices

from bwarp.cli.subcommands import SUBCOMMANDS
from tests.helpers.cases.small_genome import write_genome
from tests.helpers.programs.programs_here import run_here

CHECKOUT = Path(__file__).resolve().parents[2]
PAGES = (
    *("README.md", "CONTRIBUTING.md", "config/README.md"),
    *sorted(f"docs/{page.name}" for page in (CHECKOUT / "docs").glob("*.md")),
)

#: Beginnings of indented lines that are commands, outside ```sh blocks.
COMMAND = r"(?:\.venv/bin/|(?:bwarp|python|snakemake|make|pip|docker|apptainer|git) )"

#: Commands that are not run here, and why.
NOT_RUN = {
    "pip": "changes the environment; test_packaging.py holds what is declared to what is imported",
    "docker": "is not everywhere; test_containers.py checks what the recipe installs and copies",
    "apptainer": "is not everywhere; test_containers.py checks what the recipe installs and copies",
    "minimap2": "is not everywhere; the alignments are among the files of this test",
}


def fences(checkout, page, language):
    """Return the blocks of a page between ```LANGUAGE and ```."""
    pattern = rf"^```{language}\n(.*?)^```"
    return re.findall(pattern, (checkout / page).read_text(), re.MULTILINE | re.DOTALL)


def commands(checkout, page):
    """Return the commands of a page, split into words, without comments."""
    text = (checkout / page).read_text()
    blocks = fences(checkout, page, "sh")
    blocks += re.findall(rf"^    ({COMMAND}(?:.*\\\n)*.*)$", text, re.MULTILINE)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.fixture(scope="module")
def copy(checkout, make_copy):
    """Make a copy of the checkout with all files that the pages name."""
    copy = make_copy(forks=True)
    (written,) = fences(checkout, "config/README.md", "yaml")
    (copy / "my_config.yaml").write_text(written)
    (sheet,) = re.findall(
        r"^```text\n(sample\t.*?)^```",
        (checkout / "docs/quick-start.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
    (copy / "my_samples.tsv").write_text(sheet)
    write_inputs(copy.folder)
    return copy


def write_inputs(folder):
    """Write sequences and an index, which some commands of the pages overwrite."""
    write_sequences(folder)
    index = (folder / "genome.fa", "-o", folder / "genome.index", "--with-reverse")
    assert run_here("index_reference", *index, folder=folder).rc == 0


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
    same = b"".join(
        b"%s\t%d\t0\t%d\t+\t%s\t%d\t0\t%d\t%d\t%d\t60\tcg:Z:%dM\n"
        % (name, *[len(contig)] * 2, name, *[len(contig)] * 5)
        for name, contig in ((b"one", one), (b"two", two))
    )
    texts = {
        "reads.fq": reads["1"], "R1.fq": reads["1"], "R2.fq": reads["2"], "primers.fa": words,
        "my_primers.fa": words, "my_genome.fa": genome,
        "mature.fa": words, "hairpin.fa": genome, "MG1655.fa": genome, "DH1.fa": genome,
        "R.fa": b">r\n%s\n" % pair, "Q.fa": b">q\n%s\n" % pair[10:60], "D.fa": database,
        "Q.fq": b"@q\n%s\n+\n%s\n" % (pair[10:60], b"I" * 50), "genome.fa": genome,
        "proteins.fa": proteins, "database.fa": database,
        "guides.fa": words, "cas12a.fa": words, "probes.fa": words, "alleles.fa": genome,
        "guides.txt": b"".join(b"w%d %s\n" % (i, one[i * 50 : i * 50 + 22]) for i in range(8)),
        # Pages index genomes with both names.
        "genes.gff3": b"".join(
            b"%s\tx\tgene\t1\t900\t.\t+\t.\tName=a\n" % name for name in (b"one", b"chr1")
        ),
        "variants.vcf": b"##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\n"
        + b"one\t60\tv1\t%s\t%s\t.\t.\t.\n" % (one[59:60], b"G" if one[59:60] == b"A" else b"A"),
        "child.fa": genome, "mother.fa": genome, "child.paf": same, "mother.paf": same,
        "gene.fa": b">gene\n%s\n" % one, "exons.bed": b"one\t100\t900\n",
        "targets.bed": b"one\t100\t900\n",
        "primers.tsv": b"p %s %s\n" % (one[40:60], two[70:90]),
        "pairs.tsv": b"q\tMKVLA\tr\tMKVLAAG\n",
    }  # fmt: skip
    for unit in ("liver_L1", "liver_L2", "brain"):
        texts |= {f"{unit}_R{mate}.fq": reads[mate] for mate in "12"}
    for name, text in texts.items():
        (folder / name).write_bytes(text)
        (folder / f"{name}.gz").write_bytes(gzip.compress(text))


@pytest.mark.parametrize("page", PAGES)
def test_commands(checkout, copy, program_servers, monkeypatch, page):
    monkeypatch.chdir(copy.folder)
    # Commands of another page may have overwritten them.
    write_sequences(copy.folder)
    measured = results_of_bench(checkout)
    for words in commands(checkout, page):
        program = words[0].removeprefix(".venv/bin/")
        if program in NOT_RUN or "config/examples" in words[-1]:
            continue  # test_targets.py runs all files in config/examples
        if {"profiles/kubernetes", "profiles/sge", "/opt/bwarp/profiles/aws-batch"} & set(words):
            continue  # test_kubernetes.py and test_profiles.py plan them, if plugins are installed
        if "--report" in words:
            continue  # test_the_report_of_one_target runs it
        if program == "make":
            command = [*words, "--directory", checkout, "-n"]
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            assert process.returncode == 0, process.stderr
        elif program == "snakemake":
            # The programs have their own tests; --executor, because Slurm may be missing.
            copy.snakemake(*words[1:], "-n", "--executor", "local")
        elif program == "bwarp" and words[1] in SUBCOMMANDS:
            # In this process, which is fast.
            done = run_here(SUBCOMMANDS[words[1]].program, *words[2:], folder=".")
            assert done.rc == 0, f"{shlex.join(words)}\n{done.said}"
        elif program in ("bwarp", "python"):
            called = ["-m", *words] if program == "bwarp" else [checkout / words[1], *words[2:]]
            rc, said, _ = next(program_servers).run(called, merged=True)
            assert rc == 0, f"{shlex.join(words)}\n{said}"
        else:
            pytest.fail(f"{page} tells to run {words[0]}, which this test does not know")
    assert results_of_bench(checkout) == measured, "what make bench measured was added to"


def results_of_bench(checkout):
    """Return the sizes of results that `make bench` has left."""
    folder = checkout / "benchmarks/results/here"
    return {path.name: path.stat().st_size for path in folder.glob("*.json*")}


def test_the_report_of_one_target(checkout, copy):
    page = [" ".join(words[1:]) for words in commands(checkout, "docs/report.md")]
    make, report = (line for line in page if line.startswith("search "))
    copy.snakemake(*make.split())
    copy.snakemake(*report.split())
    assert "results/qc/previews/search.html" in (copy / report.split()[-1]).read_text()


def run_python(checkout, copy, monkeypatch, page):
    """Run the Python code of a page; return the names that it defines."""
    monkeypatch.chdir(copy.folder)
    write_inputs(copy.folder)
    block = fences(checkout, page, "python")[0]
    names = {}
    exec(compile(block, page, "exec"), names)
    return names


def test_python_that_maps(checkout, copy, monkeypatch):
    # Commands of other pages leave the index of another genome.
    index = (copy / "genome.fa", "-o", copy / "genome.index", "--with-reverse")
    assert run_here("index_reference", *index, folder=copy.folder).rc == 0
    records = run_python(checkout, copy, monkeypatch, "docs/records.md")["records"]
    assert set(records.contigs) == {"one"}
    assert records.positions.tolist() == list(range(0, 800, 20))
    assert set(records.cigars) == {"100M"}


def test_python_that_aligns_pairs(checkout, copy, monkeypatch):
    names = run_python(checkout, copy, monkeypatch, "docs/pairs.md")
    (block,) = fences(checkout, "docs/pairs.md", "python")
    expression, said = block.splitlines()[-1].split("#")
    scores, starts, cigar = eval(expression, names)
    assert f"{scores} {starts} {cigar!r}" == said.strip()


def test_python_that_searches(checkout, copy, monkeypatch):
    names = run_python(checkout, copy, monkeypatch, "docs/search.md")
    # The query is a prefix of a sequence in the database: every letter matches.
    (block,) = fences(checkout, "docs/search.md", "python")
    blosum62 = substitution_matrices.load("BLOSUM62")
    score = sum(blosum62[letter, letter] for letter in re.search(r'b"([A-Z]+)"', block)[1])
    assert (names["best"], names["score"]) == ("hemoglobin_alpha", score)


def test_python_of_both_engines(checkout, copy, monkeypatch):
    pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")
    names = run_python(checkout, copy, monkeypatch, "docs/first-kernel.md")
    assert names["on_cpu"].tolist() == names["on_gpu"].tolist() == [2, 2]


def test_links_and_quotes_of_code_are_of_today(checkout):
    # It also contains the other Python blocks of docs/first-kernel.md.
    command = [sys.executable, checkout / "docs/write_code_links.py", "--check"]
    subprocess.run(command, check=True)


def test_no_python_is_left_out(checkout):
    pages = {page for page in PAGES if fences(checkout, page, "python")}
    # test_python_page.py runs docs/python.md.
    assert pages == {
        "docs/first-kernel.md", "docs/pairs.md", "docs/python.md", "docs/records.md",
        "docs/search.md",
    }  # fmt: skip
    # test_read_names.py runs >>> in docs/simulate.md as a doctest.
    assert [page for page in PAGES if ">>> " in (checkout / page).read_text()] == [
        "docs/simulate.md"
    ]


def test_the_two_commands_of_the_front_page(checkout):
    section = (checkout / "README.md").read_text().partition("\n## Two commands\n")[2]
    assert section.lstrip().startswith("```sh\nmake run\nmake test\n```\n")


@pytest.mark.parametrize("page", PAGES)
def test_links(checkout, page):
    text = (checkout / page).read_text()
    for target in re.findall(r"\]\(([^)#\s]+)\)", text):
        if not target.startswith("http"):
            assert (checkout / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_every_program_is_listed(checkout):
    index = (checkout / "docs/index.md").read_text()
    listed = set(re.findall(r"`(?:bwarp )?([a-z0-9-]+)`", index))
    assert set(SUBCOMMANDS) <= listed


def test_tables_and_pictures_show_the_results(checkout):
    command = [sys.executable, checkout / "benchmarks/draw_docs.py", "--check"]
    subprocess.run(command, check=True)


def test_the_tables_of_choosing_show_the_results(checkout, program_servers):
    words = [checkout / "benchmarks/choosing.py", "--check"]
    rc, said, _ = next(program_servers).run(words, merged=True)
    assert rc == 0, said


def test_every_page_of_the_documentation_is_listed(checkout):
    index = (checkout / "docs/index.md").read_text()
    for page in (checkout / "docs").glob("*.md"):
        assert page.name == "index.md" or f"]({page.name})" in index, page.name
