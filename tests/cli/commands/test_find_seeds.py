"""bwarp seeds: its tables, inputs, outputs and errors; and real guides."""

import csv
import gzip
import subprocess
import sys
from collections import Counter

import pytest

from bwarp.index.chunk_store import open_index
from bwarp.index.store import save_index
from tests.helpers.cases.chunked_indexes import save_chunks
from tests.helpers.oracles.index_oracle import index_of, reference_of
from tests.helpers.oracles.seed_hits_oracle import GENOMES, hits_by_comparing, opposite
from tests.helpers.programs.refusal import refusal

SCRIPT = "find_seeds.py"

QUERIES = {
    "plain": GENOMES["repeats"][0][5:25],
    "backwards": opposite(GENOMES["repeats"][1][100:130]),
    "often": b"ACACACACAC",
    "nowhere": b"CCCCCCCCCCGGGGGGGGGG",
}
NOT_SEARCHED = {
    "degenerate": (b"ACGTNNNNNNNACGTACGT", "stands for more than 4096 sequences"),
    "short": (b"ACGTACG", "shorter than the k-mer length"),
    "long": (b"A" * 65, "longer than 64"),
}
HITS_HEADER = "query\tkmer_start\tstrand\tcontig\tposition\tmismatches\n"


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "repeats.index"
    save_index(index_of(GENOMES["repeats"]), folder)
    return folder


@pytest.fixture
def refused(checkout, monkeypatch, capsys):
    """Return a function that runs the program in this process: exit code and last line."""
    script = checkout / "scripts" / SCRIPT
    return lambda *arguments: refusal(script, arguments, monkeypatch, capsys)


@pytest.fixture
def queries(tmp_path):
    records = QUERIES | {name: letters for name, (letters, _) in NOT_SEARCHED.items()}
    path = tmp_path / "queries.fa"
    path.write_text("".join(f">{name} x\n{seq.decode()}\n" for name, seq in records.items()))
    return path


def rows_by_comparing(mismatches, max_hits=0, stopped=False) -> tuple[str, str]:
    """Return the tables of hits and of k-mers over the limit."""
    names = list(QUERIES)
    hits = hits_by_comparing(GENOMES["repeats"], list(QUERIES.values()), mismatches)
    counts = Counter(hit[0] for hit in hits)
    over = {kmer for kmer, n in counts.items() if max_hits and n > max_hits}
    return (
        HITS_HEADER
        + "".join(
            f"{names[kmer]}\t0\t{'+-'[strand]}\tcontig{contig}\t{position}\t{n}\n"
            for kmer, strand, contig, position, n in hits
            if kmer not in over
        ),
        "query\tkmer_start\thits\n"
        + "".join(
            f"{names[kmer]}\t0\t{max_hits + 1 if stopped else counts[kmer]}\n"
            for kmer in sorted(over)
        ),
    )


SKIPPED = "query\tkmer_start\treason\n" + "".join(
    f"{name}\t0\t{reason}\n" for name, (_, reason) in NOT_SEARCHED.items()
)


def test_tables_and_messages(run_program, index, queries, tmp_path):
    output = tmp_path / "new_folder" / "out.tsv"
    output.parent.mkdir()
    arguments = ("--index", index, "--queries", queries, "-o", output, "--mismatches", 1)
    for more in (("--threads", 1), ("--threads", 3), ("--algorithm", "backtracking")):
        hits, over = rows_by_comparing(1, 20, stopped="backtracking" in more)
        done = run_program(SCRIPT, *arguments, "--max-hits", 20, "--backend", "cpu", *more)
        assert (done.rc, done.stdout) == (0, "")
        # A slow machine that compiles first reports progress before this line.
        assert done.stderr.splitlines()[-2:] == [
            f"warning: 3 queries were not searched: see "
            f"{tmp_path}/new_folder/out.skipped.tsv for the reasons",
            f"4 k-mers searched: {hits.count(chr(10)) - 1:,} hits of 2, 1 over the limit, "
            "1 without a hit; 3 skipped",
        ]
        assert output.read_text() == hits
        assert (tmp_path / "new_folder" / "out.over.tsv").read_text() == over
        assert (tmp_path / "new_folder" / "out.skipped.tsv").read_text() == SKIPPED
    assert len(list(output.parent.iterdir())) == 3


def test_standard_input_and_output(run_program, index, queries):
    arguments = ("--index", index, "--queries", "-", "-o", "-", "--max-hits", 0)
    done = run_program(SCRIPT, *arguments, stdin=queries.read_text())
    assert (done.rc, done.stdout) == (0, rows_by_comparing(0)[0])


def test_compressed_fastq_and_cut_kmers(run_program, index, tmp_path):
    read = GENOMES["repeats"][2][:40]
    records = f"@r1 a\n{read.decode()}\n+\n{'I' * 40}\n@r2\nACG\n+\nIII\n"
    with gzip.open(tmp_path / "reads.fq.gz", "wt") as file:
        file.write(records)
    output = tmp_path / "out.tsv.gz"
    run = ("--index", index, "--queries", tmp_path / "reads.fq.gz", "-o", output)
    done = run_program(SCRIPT, *run, "-k", 15, "--step", 10, "--max-hits", 0)
    assert done.rc == 0
    kmers = [read[start : start + 15] for start in (0, 10, 20)]
    expected = HITS_HEADER + "".join(
        f"r1\t{10 * kmer}\t{'+-'[strand]}\tcontig{contig}\t{position}\t{n}\n"
        for kmer, strand, contig, position, n in hits_by_comparing(GENOMES["repeats"], kmers, 0)
    )
    assert gzip.decompress(output.read_bytes()).decode() == expected
    skipped = (tmp_path / "out.skipped.tsv").read_text()
    assert skipped == "query\tkmer_start\treason\nr2\t0\tshorter than the k-mer length\n"


def test_counts_only(run_program, index, queries, tmp_path):
    output = tmp_path / "counts.tsv"
    run = ("--index", index, "--queries", queries, "-o", output, "--mismatches", 2)
    done = run_program(SCRIPT, *run, "--count-only")
    hits = hits_by_comparing(GENOMES["repeats"], list(QUERIES.values()), 2)
    counts = Counter(hit[0] for hit in hits)
    assert done.rc == 0
    assert output.read_text() == "query\tkmer_start\thits\n" + "".join(
        f"{name}\t0\t{counts[i]}\n" for i, name in enumerate(QUERIES)
    )
    assert (tmp_path / "counts.skipped.tsv").read_text() == SKIPPED
    assert not (tmp_path / "counts.over.tsv").exists()


def test_a_reader_that_goes_away(checkout, index, tmp_path):
    (tmp_path / "q.fa").write_text(">q\nACACACAC\n" * 20_000)
    process = subprocess.Popen(
        [sys.executable, checkout / "scripts" / SCRIPT]
        + ["--index", index, "--queries", tmp_path / "q.fa", "-o", "-", "--max-hits", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout.readline().decode() == HITS_HEADER
    process.stdout.close()
    with process.stderr as stderr:
        assert b"Traceback" not in stderr.read()
    assert process.wait() == 1


def test_no_queries(run_program, index, tmp_path):
    (tmp_path / "empty.fa").write_text("")
    output = tmp_path / "out.tsv"
    done = run_program(SCRIPT, "--index", index, "--queries", tmp_path / "empty.fa", "-o", output)
    assert done.rc == 0
    assert (
        done.stderr.splitlines()[0]
        == f"warning: {tmp_path}/empty.fa: the file contains no sequences"
    )
    assert output.read_text() == HITS_HEADER


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--step", "3"],
            "--step requires -k",
        ),
        (
            ["-o", "hits.txt"],
            "hits.txt: the output must end in .tsv, .bed, .tsv.gz, .bed.gz or .parquet",
        ),
        (
            ["-o", "x.bed", "--count-only"],
            "--count-only requires .tsv or .tsv.gz output",
        ),
        (
            ["--locate", "gpu", "--backend", "cpu"],
            "locate gpu requires a GPU, but the backend is cpu: use --locate cpu",
        ),
        (
            ["-k", "7"],
            "argument -k: '7' is not a whole number from 8 to 64, or whole "
            "(see find_seeds.py --help)",
        ),
        (
            ["--mismatches", "5"],
            "argument -v/--mismatches: '5' is not a whole number from 0 to 4 "
            "(see find_seeds.py --help)",
        ),
        (
            ["--max-hits", "many"],
            "argument -m/--max-hits: 'many' is not a whole number from 0 to 4294967296 "
            "(see find_seeds.py --help)",
        ),
    ],
)
def test_invalid_options(refused, index, queries, tmp_path, arguments, message):
    run = ("--index", index, "--queries", queries, "-o", tmp_path / "out.tsv")
    assert refused(*run, *arguments) == (2, f"find_seeds.py: error: {message}\n")
    assert list(tmp_path.iterdir()) == [queries]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "not sequences\n",
            "{path}, line 1: neither FASTA (>name) nor FASTQ (@name): "
            "the line begins with 'not sequences'",
        ),
        (">q\nACGTEACGT\n", "{path}, line 2: 'E' is not a valid sequence letter"),
        (
            ">a\nACGTACGTACGT\n>b\nACGTACGTACGT\n> \nACGTACGTACGT\n",
            "{path}, record 3 has no name: write one after > or @",
        ),
    ],
)
def test_queries_that_cannot_be_read(refused, index, tmp_path, text, message):
    path = tmp_path / "q.fa"
    path.write_text(text)
    run = ("--index", index, "--queries", path, "-o", tmp_path / "out.tsv", "--backend", "cpu")
    assert refused(*run) == (1, f"find_seeds.py: error: {message.format(path=path)}\n")
    assert list(tmp_path.iterdir()) == [path]


def test_missing_files(refused, index, queries, tmp_path):
    run = ("-o", tmp_path / "out.tsv", "--backend", "cpu")
    assert refused("--index", tmp_path / "x", "--queries", queries, *run) == (
        1,
        f"find_seeds.py: error: {tmp_path}/x: no such index: "
        f"make it with bwarp index REF.fa -o {tmp_path}/x\n",
    )
    assert refused("--index", index, "--queries", tmp_path / "no.fa", *run) == (
        1,
        f"find_seeds.py: error: {tmp_path}/no.fa: no such file or folder: check the path\n",
    )


# --- Guides on human chromosome 20 ---------------------------------------------------------------

#: Guides missing in CRISPOR's table because they have too many hits.
CAPPED = {"275forw", "287forw", "333rev", "363forw", "364forw"}


def test_off_targets_of_guides(run_program, shared_data, large_data, tmp_path):
    """CRISPOR's sites for 53 guides: up to 4 mismatches in 20 bases, then NGG, NAG or NGA."""
    genome = large_data("chr20.fa")
    guides = {row["guideId"]: row["targetSeq"] for row in table(shared_data, "guides_hg19.tsv")}
    (tmp_path / "guides.fa").write_text(
        "".join(f">{name}\n{seq[:20]}\n" for name, seq in guides.items() if name not in CAPPED)
    )
    index = tmp_path / "chr20.index"
    options = ("--with-reverse", "--backend", "cpu")
    assert run_program("index_reference.py", genome, "-o", index, *options).rc == 0
    output = tmp_path / "hits.tsv"
    run = ("--index", index, "--queries", tmp_path / "guides.fa", "-o", output)
    done = run_program(SCRIPT, *run, "--mismatches", 4, "--max-hits", 0)
    assert done.rc == 0, done.stderr
    letters = b"".join(genome.read_bytes().upper().split(b"\n")[1:])
    found = {"GG": set(), "AG": set(), "GA": set()}
    with output.open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            position, mismatches = int(row["position"]), int(row["mismatches"])
            if row["strand"] == "+":
                start, site = position, letters[position : position + 23]
            else:
                start, site = position - 3, opposite(letters[position - 3 : position + 20])
            site = site.decode()
            if site[21:] in found:
                found[site[21:]].add((row["query"], start, row["strand"], site, mismatches))
    listed = {"GG": set(), "AG": set(), "GA": set()}
    for row in table(shared_data, "expected_hg19_chr20.tsv"):
        site = row["offtargetSeq"]
        where = (row["guideId"], int(row["start"]) - 1, row["strand"])
        listed[site[21:]].add((*where, site, int(row["mismatchCount"])))
    listed_guides = {hit[0] for hits in listed.values() for hit in hits}
    assert not listed_guides & CAPPED
    assert found["GG"] == listed["GG"]
    # CRISPOR lists sites with weaker PAMs only if they score well.
    assert listed["AG"] < found["AG"]
    assert listed["GA"] < found["GA"]


def table(shared_data, name):
    with shared_data("crispr_crispor", name).open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


@pytest.fixture
def chunks(tmp_path):
    """Return an index in chunks of the same genome."""
    save_chunks(reference_of(GENOMES["repeats"]), 150, tmp_path / "repeats.chunks")
    return tmp_path / "repeats.chunks"


def tables_of(run_program, folder, index, queries, *options):
    """Return the contents of all tables of a run."""
    out = folder / "found"
    out.mkdir(exist_ok=True)
    done = run_program(
        SCRIPT, "--index", index, "--queries", queries, "-o", out / "hits.tsv", *options
    )
    assert done.rc == 0, done.stderr
    tables = {path.name: path.read_bytes() for path in out.iterdir()}
    return tables, done.stderr.splitlines()[-1]


IN_CHUNKS = [
    ("--mismatches", 1, "--max-hits", 20),
    ("--mismatches", 2, "--max-hits", 0, "--site-sequence"),
    ("-k", 9, "--step", 2, "--max-hits", 30),
    ("--mismatches", 1, "--count-only"),
    ("--mismatches", 1, "--pam", "NGN", "--max-hits", 30),
]


@pytest.mark.parametrize("options", IN_CHUNKS)
def test_an_index_in_chunks(run_program, index, chunks, queries, tmp_path, options):
    queries.write_text(queries.read_text() + ">iupac\nACRYACACNC\n")
    options = (*options, "--backend", "cpu")
    expected = tables_of(run_program, tmp_path, index, queries, *options)
    assert expected[0]["hits.tsv"].count(b"\n") > 3
    for spread in ((), ("--spread",)):
        found = tables_of(run_program, tmp_path, chunks, queries, *options, *spread)
        assert found == expected


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", [1, 2, 4])
@pytest.mark.parametrize("options", IN_CHUNKS)
def test_an_index_in_chunks_on_gpus(run_program, index, chunks, queries, tmp_path, options, gpus):
    from bwarp.gpu.cuda import cuda

    if gpus > len(cuda.gpus):
        pytest.skip(f"needs {gpus} GPUs")
    expected = tables_of(run_program, tmp_path, index, queries, *options, "--backend", "cpu")
    for spread in ((), ("--spread",)):
        more = ("--backend", "cuda", "--gpus", gpus, *spread)
        assert tables_of(run_program, tmp_path, chunks, queries, *options, *more) == expected


def test_spread_and_the_reverse_of_chunks(refused, run_program, index, queries, tmp_path):
    arguments = ("--queries", queries, "-o", tmp_path / "hits.tsv", "--backend", "cpu")
    rc, said = refused("--index", index, *arguments, "--spread")
    assert rc == 2
    assert said.rstrip().endswith(
        "--spread requires an index in chunks: build one with bwarp index REF.fa -o INDEX "
        "--chunk-bases N"
    )
    folder = tmp_path / "chunks"
    reference = reference_of(GENOMES["repeats"])
    save_chunks(reference, 150, folder, with_reverse=False)
    rc, said = refused("--index", folder, *arguments, "--mismatches", 1)
    assert rc == 2
    assert said.rstrip().endswith(f"add it with bwarp index -o {folder} --with-reverse")
    done = run_program("index_reference.py", "-o", folder, "--with-reverse", "--verify")
    assert done.rc == 0, done.stderr
    assert "verified: both BWTs spell" in done.stderr
    whole = save_chunks(reference, 150, tmp_path / "whole")
    for one, other in zip(open_index(folder).indexes, whole.indexes, strict=True):
        assert one.description == other.description
    tables_of(run_program, tmp_path, folder, queries, "--mismatches", 1, "--backend", "cpu")
