"""bwarp mems as users run it: against MUMmer 3 and its recorded output, and its errors."""

import gzip
import shutil
import subprocess

import numpy as np
import pyarrow.parquet as pq
import pytest

from bwarp.sequence import decode, encode, reverse_complement


def random_bases(rng, n):
    return decode(rng.integers(0, 4, n).astype(np.uint8)).decode()


def write_fasta(path, records):
    path.write_text("".join(f">{name}\n{letters}\n" for name, letters in records))
    return path


@pytest.fixture(scope="module")
def genomes(tmp_path_factory, run_program):
    """Return a reference of several contigs, its index, and related queries with N and repeats."""
    folder = tmp_path_factory.mktemp("genomes")
    rng = np.random.default_rng(5)
    repeat = random_bases(rng, 80)
    a, b = random_bases(rng, 3000), random_bases(rng, 900)
    first = a[:1000] + repeat + a[1000:2000] + "NNNNN" + a[2000:] + repeat
    second = b + repeat[:50] + "R" + b[:40]
    reference = write_fasta(
        folder / "ref.fa",
        [("first one", first), ("second", second.lower()), ("short", "ACGTACGTAC")],
    )
    changed = list(first)
    for at in range(50, len(changed), 137):
        changed[at] = "ACGT"[("ACGT".find(changed[at]) + 1) % 4]
    turned = decode(reverse_complement(encode(second.encode()))).decode()
    queries = write_fasta(
        folder / "queries.fa",
        [
            ("genome with words", "".join(changed)),
            ("turned", turned + "NN" + turned[:300]),
            ("unlike", random_bases(rng, 200)),
            ("lower", b[100:180].lower()),
            ("tiny", "ACG"),
        ],
    )
    done = run_program(
        "index_reference.py", reference, "-o", folder / "ref.index", "--with-reverse"
    )
    assert done.rc == 0, done.stderr
    return reference, folder / "ref.index", queries


def mummer(reference, queries, *options):
    if shutil.which("mummer") is None:
        pytest.skip("needs the program mummer (apt install mummer)")
    command = ["mummer", "-n", *options, reference, queries]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["-maxmatch", "-b"], ["--kind", "maxmatch", "--strands", "both"]),
        (["-maxmatch", "-F", "-L"], ["--kind", "maxmatch", "--four-column", "--show-lengths"]),
        (["-b", "-c", "-L"], ["--strands", "both", "-c", "-L"]),
        (["-mumreference", "-r", "-l", "15"], ["--strands", "reverse", "--min-length", "15"]),
        (
            ["-mum", "-b", "-c", "-l", "12"],
            ["--kind", "mum", "--strands", "both", "-c", "-l", "12"],
        ),
    ],
)
def test_as_mummer_prints(genomes, run_program, theirs, ours):
    reference, index, queries = genomes
    expected = mummer(reference, queries, *theirs)
    for target in (["--index", index], ["--reference", reference]):
        done = run_program("find_mems.py", *target, "--queries", queries, "-o", "-", *ours)
        assert done.rc == 0, done.stderr
        if "-maxmatch" in theirs:  # mummer has its own order of matches at one position
            assert sorted(done.stdout.splitlines()) == sorted(expected.splitlines())
        else:
            assert done.stdout == expected


def test_recorded_answer(shared_data, run_program, tmp_path):
    """Output of `mummer -mum -b -c` on slices of H. pylori, from MUMmer's documentation."""
    data = shared_data("expected_mummer", "debian", "data")
    done = run_program(
        "find_mems.py", "--reference", data / "H_pylori26695_Eslice.fasta.gz",
        "--queries", data / "H_pyloriJ99_Eslice.fasta.gz", "-o", tmp_path / "out.mums.gz",
        "--kind", "mum", "--strands", "both", "-c",
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    expected = gzip.decompress((data / "mummer.mums.gz").read_bytes())
    assert gzip.decompress((tmp_path / "out.mums.gz").read_bytes()) == expected


@pytest.mark.parametrize("kind", ["maxmatch", "mumreference", "mum"])
def test_bacteria(shared_data, run_program, tmp_path, kind):
    folder = shared_data("refs_bacteria_mummer", "hpylori")
    paths = []
    for name in ("G27", "ELS37"):
        paths.append(tmp_path / f"{name}.fa")
        paths[-1].write_bytes(gzip.decompress((folder / f"{name}.fasta.gz").read_bytes()))
    expected = mummer(*paths, f"-{kind}", "-b").splitlines()
    done = run_program(
        "find_mems.py", "--reference", paths[0], "--queries", paths[1], "-o", "-",
        "--kind", kind, "--strands", "both",
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_same_bytes_whatever_the_threads(genomes, run_program, tmp_path):
    reference, index, queries = genomes
    for ending in ("mums", "paf", "tsv", "parquet"):
        outputs = []
        for number, more in enumerate(
            (["--index", index], ["--reference", reference],
             ["--index", index, "--chunk-bases", "1000", "--backend", "cpu"])
        ):  # fmt: skip
            path = tmp_path / f"out{number}.{ending}"
            done = run_program(
                "find_mems.py", *more, "--queries", queries, "-o", path, "--strands", "both",
                "--kind", "maxmatch", "--threads", 1 + number,
            )  # fmt: skip
            assert done.rc == 0, done.stderr
            outputs.append(path.read_bytes())
        assert outputs[0] == outputs[1] == outputs[2]


def test_a_table_holds_what_parquet_does(genomes, run_program, tmp_path):
    _, index, queries = genomes
    for ending in ("tsv", "parquet"):
        done = run_program(
            "find_mems.py", "--index", index, "--queries", queries, "-o", tmp_path / f"m.{ending}",
            "--strands", "both",
        )  # fmt: skip
        assert done.rc == 0, done.stderr
    table = pq.read_table(tmp_path / "m.parquet")
    rows = ["\t".join(map(str, row.values())) for row in table.to_pylist()]
    assert len(rows) > 10
    header = "\t".join(table.column_names)
    assert (tmp_path / "m.tsv").read_text().splitlines() == [header, *rows]


def test_fastq_from_a_pipe_and_an_empty_file(genomes, run_program, tmp_path):
    _, index, _ = genomes
    done = run_program("find_mems.py", "--index", index, "--queries", "-", "-o", "-",
                       stdin="@r1 x\nACGTACGTAC\n+\nIIIIIIIIII\n")  # fmt: skip
    assert (done.rc, done.stdout) == (0, "> r1\n")
    empty = tmp_path / "empty.fa"
    empty.write_text("")
    done = run_program("find_mems.py", "--index", index, "--queries", empty, "-o", "-")
    assert (done.rc, done.stdout) == (0, "")
    assert "0 queries, 0 matches" in done.stderr


def test_errors(genomes, run_program, tmp_path):
    reference, index, queries = genomes
    nameless = write_fasta(tmp_path / "nameless.fa", [("a", "ACGT"), ("", "ACGT")])
    output = tmp_path / "out.paf"
    base = ["--queries", queries, "-o", output]
    for arguments, rc, message in [
        ([*base], 2, "no reference is given: use --index or --reference"),
        ([*base, "--index", index, "--reference", reference], 2,
         "no reference is given: use --index or --reference"),
        ([*base, "--index", index, "-c"], 2,
         "--forward-positions requires MUMmer's format: omit it, or use an output that does not "
         "end in .paf"),
        ([*base, "--index", index, "-l", "0"], 2,
         "argument -l/--min-length: '0' is not a whole number from 1 to 2147483648"),
        (["--queries", queries, "-o", tmp_path / "x.bed.gz", "--index", index], 2,
         f"{tmp_path}/x.bed.gz: matches cannot be written as .bed: use .mums for "
         "MUMmer's format, or .tsv, .paf or .parquet"),
        (["--queries", queries, "-o", tmp_path / "x.parquet.gz", "--index", index], 2,
         f"{tmp_path}/x.parquet.gz: Parquet is already compressed: omit .gz"),
        ([*base, "--reference", reference, "--backend", "cuda"], 2,
         "--backend cuda requires --index or --chunk-bases"),
        (["--queries", nameless, "-o", output, "--index", index], 1,
         f"{nameless}, record 2 has no name: write one after > or @"),
        ([*base, "--index", tmp_path / "none"], 1, f"{tmp_path}/none: no such index"),
    ]:  # fmt: skip
        done = run_program("find_mems.py", *arguments)
        assert done.rc == rc, done.stderr
        assert message in done.stderr.splitlines()[-1]
        assert not output.exists()


def test_an_index_in_chunks(genomes, run_program, tmp_path):
    reference, index, queries = genomes
    chunks = tmp_path / "ref.chunks"
    done = run_program("index_reference.py", reference, "-o", chunks, "--chunk-bases", 1000)
    assert done.rc == 0, done.stderr
    assert "chunks 5" in done.stdout
    for options in (
        ["--kind", "maxmatch", "--strands", "both", "-l", "15", "-o", "m.mums"],
        ["--kind", "mumreference", "-L", "-o", "m.mums"],
        ["--kind", "mum", "--strands", "both", "-l", "70", "-o", "m.tsv"],
    ):
        found = []
        for searched in (["--index", index], ["--index", chunks], ["--index", chunks, "--spread"]):
            done = run_program(
                "find_mems.py", *searched, "--queries", queries, *options, "--backend", "cpu",
                cwd=tmp_path,
            )  # fmt: skip
            assert done.rc == 0, done.stderr
            found.append((tmp_path / options[-1]).read_bytes())
        assert found[0] == found[1] == found[2]
        assert found[0].count(b"\n") > 6


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_an_index_in_chunks_on_gpus(genomes, run_program, tmp_path, gpus):
    from bwarp.gpu.cuda import cuda

    if gpus > len(cuda.gpus):
        pytest.skip(f"needs {gpus} GPUs")
    reference, index, queries = genomes
    run_program(
        "index_reference.py", reference, "-o", tmp_path / "ref.chunks", "--chunk-bases", 1000
    )
    more = ["--queries", queries, "--strands", "both", "-o", "-"]
    expected = run_program("find_mems.py", "--index", index, *more, "--backend", "cpu").stdout
    for spread in ([], ["--spread"]):
        done = run_program(
            "find_mems.py", "--index", tmp_path / "ref.chunks", *more, "--backend", "cuda",
            "--gpus", gpus, *spread,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        assert done.stdout == expected


def test_spread_requires_chunks(genomes, run_program, tmp_path):
    reference, index, queries = genomes
    for searched in (["--index", index], ["--reference", reference]):
        done = run_program(
            "find_mems.py", *searched, "--queries", queries, "-o", tmp_path / "m.mums", "--spread"
        )
        assert done.rc == 2
        assert done.stderr.splitlines()[-1].endswith(
            "--spread requires an index in chunks: build one with bwarp index REF.fa -o INDEX "
            "--chunk-bases N"
        )
