"""bwarp index as users run it: its output, its errors, and what it leaves behind."""

import gc
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bwarp.cli.program import run_program as run_main
from bwarp.errors import GpuMemoryError
from bwarp.index.build import build_index, build_reverse
from bwarp.index.chunk_store import open_index
from bwarp.index.parameters import size_table
from bwarp.index.store import load_index
from bwarp.index.verify import verify_index

SCRIPT = Path(__file__).resolve().parents[3] / "scripts" / "index_reference.py"

FASTA = b">chr1 first\nACGTNNACGTTGCAAC\nGT\n>chr2\nGGGATTACAGGG\n"


class Answer(NamedTuple):
    rc: int
    out: str
    last: str


@pytest.fixture(scope="module")
def program():
    from bwarp.cli.commands import index_reference

    return index_reference


@pytest.fixture
def index_reference(program, capfd, tmp_path, monkeypatch):
    """Run the program in this process, in `tmp_path`; return its files and last line."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["index_reference.py"])

    def run(*arguments) -> Answer:
        rc = 0
        try:
            run_main(program.parse_options(), program.main, [str(a) for a in arguments])
        except SystemExit as left:
            rc = left.code
        written = capfd.readouterr()
        return Answer(rc, written.out, (written.err.splitlines() or [""])[-1])

    return run


@pytest.fixture
def fasta(tmp_path):
    path = tmp_path / "r.fa"
    path.write_bytes(FASTA)
    return path


def test_help_version_and_a_whole_run(run_program, fasta, tmp_path):
    assert "examples:" in run_program("index_reference.py", "--help").stdout
    done = run_program("index_reference.py", "r.fa", "-o", "r.index", "--verify", cwd=tmp_path)
    assert done.rc == 0, done.stderr
    index = load_index(tmp_path / "r.index")
    verify_index(index)
    assert done.stdout == size_table(index) + "\n"
    assert done.stderr.splitlines()[0].startswith("indexing 30 bases of 2 contigs on c")
    assert done.stderr.splitlines()[-2:] == [
        "verifying ...",
        "verified: the BWT spells the text, and the tables match it",
    ]


def test_options_and_a_compressed_file(index_reference, fasta, tmp_path):
    (tmp_path / "r.fa.gz").write_bytes(gzip.compress(FASTA))
    options = ("--occ-rate", 96, "--sa-rate", 1, "--prefix-length", 0, "--backend", "cpu")
    (tmp_path / "deep/er").mkdir(parents=True)
    answer = index_reference("r.fa.gz", "-o", "deep/er/r.index", *options)
    assert answer.rc == 0
    index = load_index("deep/er/r.index")
    assert (index.occ_rate, index.sa_rate, index.prefix_length) == (96, 1, 0)
    assert index.reference.names == ("chr1", "chr2")
    assert os.listdir("deep/er") == ["r.index"]


def test_the_folder_does_not_depend_on_threads_and_memory(index_reference, tmp_path):
    rng = np.random.default_rng(12)
    bases = rng.choice(np.frombuffer(b"ACGTN", np.uint8), 300_000, p=[0.2499] * 4 + [0.0004])
    (tmp_path / "big.fa").write_bytes(b">a\n" + bases.tobytes() + b"\n" + FASTA)
    found = []
    for threads, memory in ((1, "8G"), (2, "1M"), (4, "300M")):
        backend = ("--backend", "cpu", "--threads", threads, "--memory", memory)
        assert index_reference("big.fa", "-o", f"{threads}.index", *backend).rc == 0
        folder = tmp_path / f"{threads}.index"
        found.append({path.name: path.read_bytes() for path in folder.iterdir()})
        assert str(tmp_path).encode() not in found[-1]["index.json"]
    assert found[0] == found[1] == found[2]


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def test_the_reverse_made_at_once_and_added_later(index_reference, program, tmp_path, capfd):
    rng = np.random.default_rng(13)
    bases = rng.choice(np.frombuffer(b"ACGTN", np.uint8), 200_000, p=[0.2499] * 4 + [0.0004])
    (tmp_path / "r.fa").write_bytes(b">a\n" + bases.tobytes() + b"\n" + FASTA)
    options = ("--occ-rate", 32, "--backend", "cpu")
    at_once = index_reference("r.fa", "-o", "both", "--with-reverse", "--verify", *options)
    assert at_once.rc == 0
    assert at_once.last == "verified: both BWTs spell the text, and the tables match it"
    assert index_reference("r.fa", "-o", "r.index", *options).rc == 0
    (tmp_path / "r.fa").unlink()
    said = []
    program.say, kept = said.append, program.say
    try:
        for threads, memory in ((1, "8G"), (2, "1M"), (4, "300M")):
            copy = shutil.copytree("r.index", f"{threads}.index")
            add = ("-o", copy, "--with-reverse", "--threads", threads, "--memory", memory)
            added = index_reference(*add, "--backend", "cpu")
            assert added == (0, at_once.out, "")
            assert contents(copy) == contents("both")
        assert said == ["adding the reverse BWT of 200,030 bases on cpu"] * 3
        # The second run writes nothing.
        before = {path: path.stat() for path in Path("1.index").iterdir()}
        assert index_reference("-o", "1.index", "--with-reverse") == (0, at_once.out, "")
        assert said[3:] == ["1.index already has the reverse BWT: nothing was changed"]
        assert {path: path.stat() for path in Path("1.index").iterdir()} == before
    finally:
        program.say = kept


def test_adding_the_reverse_to_damaged_and_other_folders(index_reference, fasta, tmp_path):
    answer = index_reference("-o", "deep/i", "--with-reverse")
    assert answer == (1, "", "index_reference.py: error: deep/i: no such index: make it with "
                      "bwarp index REF.fa -o deep/i")  # fmt: skip
    assert index_reference("r.fa", "-o", "i").rc == 0
    path = Path("i/genome.npy")
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    before = contents("i")
    answer = index_reference("-o", "i", "--with-reverse")
    assert answer.rc == 1
    assert answer.last.startswith(f"index_reference.py: error: {path}: the file is damaged")
    assert contents("i") == before
    assert sorted(os.listdir(tmp_path)) == ["i", "r.fa"]


def test_a_gpu_that_is_too_small_to_add_the_reverse(index_reference, program, fasta, monkeypatch):
    assert index_reference("r.fa", "-o", "i").rc == 0
    used = []

    def build(reference, occ_rate, backend, *further):
        used.append(backend)
        if backend == "cuda":
            raise GpuMemoryError(
                "sorting requires 75.0 GB of GPU memory, but only 20.0 GB are free"
            )
        return build_reverse(reference, occ_rate, backend, *further)

    monkeypatch.setattr(program, "build_reverse", build)
    monkeypatch.setattr(program, "choose_engine", lambda requested: "cuda")
    assert index_reference("-o", "i", "--with-reverse", "--verify").rc == 0
    assert used == ["cuda", "cpu"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": the file contains no sequences"),
        (b">a\n>b\n", ": all contigs are empty"),
        (b">a\nNNNN\n", ": no contig has an A, C, G or T: there is nothing to index"),
        (b">p\nMSEQNN\n", ", line 2: 'E' is a protein letter: the reference must be DNA or RNA "
         "(IUPAC letters)"),
        (b">a\nAC\n>a\nGT\n", ", line 3: two contigs are named 'a', the first in line 1: rename "
         "one"),
        (gzip.compress(FASTA, mtime=0)[:-12], ": the compressed file is truncated: download or "
         "write it again"),
        (b"@r\nACGT\n+\nIIII\n", ", line 1: this looks like FASTQ, but the reference must be "
         "FASTA (>name)"),
    ],
)  # fmt: skip
def test_bad_references(index_reference, tmp_path, content, message):
    (tmp_path / "bad.fa").write_bytes(content)
    answer = index_reference("bad.fa", "-o", "bad.index")
    assert answer == (1, "", f"index_reference.py: error: bad.fa{message}")
    assert os.listdir(tmp_path) == ["bad.fa"]


@pytest.mark.parametrize(
    ("arguments", "rc", "message"),
    [
        (["absent.fa", "-o", "i"], 1, "absent.fa: no such file or folder: check the path"),
        ([".", "-o", "i"], 1, ".: is a folder, not a file"),
        (["r.fa"], 2, "the following arguments are required: -o/--output "
         "(see index_reference.py --help)"),
        (["-o", "i"], 2, "no reference is given: give a FASTA file, or use --with-reverse or "
         "--verify with an existing index"),
        (["r.fa", "-o", "i", "--occ-rate", "48"], 2, "argument --occ-rate: '48' is not a "
         "multiple of 32 from 32 to 1024 (see index_reference.py --help)"),
        (["r.fa", "-o", "i", "--sa-rate", "0"], 2, "argument --sa-rate: '0' is not a whole "
         "number from 1 to 1024 (see index_reference.py --help)"),
        (["r.fa", "-o", "i", "--prefix-length", "15"], 2, "argument --prefix-length: '15' is "
         "not a whole number from 0 to 14, or auto (see index_reference.py --help)"),
        (["r.fa", "-o", "i", "--memory", "16"], 2, "argument --memory: '16' is not a size such "
         "as 16G or 800M (see index_reference.py --help)"),
        (["r.fa", "-o", "r.fa"], 2, "r.fa: the name is used by another file of this run: choose "
         "another output"),
        (["r.fa", "-o", "."], 2, None),
        (["-o", "i", "--verify"], 1, "i: no such index: make it with bwarp index "
         "REF.fa -o i"),
    ],
)  # fmt: skip
def test_bad_arguments(index_reference, fasta, tmp_path, arguments, rc, message):
    answer = index_reference(*arguments)
    assert answer.rc == rc
    if message is not None:
        assert answer.last == f"index_reference.py: error: {message}"
    assert answer.out == ""
    assert os.listdir(tmp_path) == ["r.fa"]


def test_unwritable_outputs_are_reported_before_reading_the_reference(index_reference, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    answer = index_reference("absent.fa", "-o", "photos")
    assert answer.rc == 2
    assert answer.last == (
        "index_reference.py: error: photos: contains other files and no index.json: give the "
        "name of a new folder, or of one to replace"
    )
    (tmp_path / "photos" / "index.json").write_text("{}")
    answer = index_reference("absent.fa", "-o", "photos")
    assert answer == (2, "", "index_reference.py: error: photos: contains an index.json that "
                      "bwarp did not write: give the name of a new folder")  # fmt: skip
    assert sorted(os.listdir("photos")) == ["cat.jpg", "index.json"]


def test_contigs_in_which_nothing_can_match(index_reference, tmp_path, program, capfd):
    empty = b"".join(b">n%d\n%s\n" % (i, b"N" * i) for i in range(7))
    (tmp_path / "r.fa").write_bytes(FASTA + empty)
    program.warn_of_contigs_without_bases(["a"])
    program.warn_of_contigs_without_bases([])
    assert capfd.readouterr().err == (
        "warning: 1 contig contains no A, C, G or T, so nothing can match there: a\n"
    )
    monitored = []
    program.say, kept = monitored.append, program.say
    try:
        assert index_reference("r.fa", "-o", "i").rc == 0
    finally:
        program.say = kept
    assert monitored[0] == (
        "warning: 7 contigs contain no A, C, G or T, so nothing can match there: n0, n1, n2, "
        "n3, n4, ..."
    )


def test_damaged_and_other_indexes(index_reference, fasta):
    assert index_reference("r.fa", "-o", "i").rc == 0
    assert index_reference("-o", "i", "--verify").rc == 0
    path = Path("i/suffix_array.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    answer = index_reference("-o", "i", "--verify")
    assert answer == (1, "", f"index_reference.py: error: {path}: the file is damaged between "
                      f"bytes 0 and {len(whole):,}: build the index again")  # fmt: skip
    description = Path("i/index.json")
    description.write_text(json.dumps(json.loads(description.read_text()) | {"version": 99}))
    answer = index_reference("-o", "i", "--verify")
    assert answer == (1, "", "index_reference.py: error: i/index.json: the index has format "
                      "version 99, but this bwarp reads version 1 or 2: build the "
                      "index again")  # fmt: skip
    # Both are repaired by building again.
    assert index_reference("r.fa", "-o", "i", "--verify").rc == 0


def test_a_complete_but_wrong_index(index_reference, fasta, monkeypatch):
    """Checksums do not detect errors from before writing; verification does."""
    from bwarp.io import chunk_files as checksum

    assert index_reference("r.fa", "-o", "i").rc == 0
    array = np.load("i/suffix_array.npy")
    array[[0, 1]] = array[[1, 0]]
    recorded = checksum.save_with_sums(Path("i/suffix_array.npy"), array)
    description = json.loads(Path("i/index.json").read_text())
    description["files"]["suffix_array.npy"] = recorded
    del description["sum"]
    canonical = json.dumps(description, sort_keys=True, separators=(",", ":"))
    description["sum"] = checksum.text_sum(canonical)
    Path("i/index.json").write_text(json.dumps(description))
    answer = index_reference("-o", "i", "--verify")
    assert answer.rc == 1
    assert answer.last.startswith(
        "index_reference.py: error: the index is invalid (its forward BWT or suffix array "
        "disagrees with the text at position "
    )


# Writes one file of the index, reports it, and waits for a signal.
STOPS_WHILE_WRITING = """
import runpy, sys, time
import bwarp.index.store as store
save = store.save_with_sums
def save_and_wait(path, array):
    save(path, array)
    print("written", flush=True)
    time.sleep(100)
store.save_with_sums = save_and_wait
sys.path.append(sys.argv[1].rpartition("/")[0])
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def stop_while_writing(folder: Path, how: signal.Signals, *what: str) -> tuple[int, str, list[str]]:
    """Return exit code, standard error, and the hidden folders just before the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", STOPS_WHILE_WRITING, SCRIPT, *(what or ["r.fa"]), "-o", "r.index"]
        + ["--threads", "1", "--backend", "cpu"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "written\n"
    parts = [name for name in os.listdir(folder) if name.endswith(".part")]
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    return process.returncode, err, parts


@pytest.mark.parametrize("older", [False, True])
def test_killed_while_writing(index_reference, fasta, tmp_path, older):
    if older:
        assert index_reference("r.fa", "-o", "r.index", "--sa-rate", 2).rc == 0
    rc, _, parts = stop_while_writing(tmp_path, signal.SIGKILL)
    assert rc == -signal.SIGKILL
    assert len(parts) == 1
    assert set(os.listdir(tmp_path)) == {"r.fa", *parts, *(["r.index"] if older else [])}
    if older:
        assert load_index("r.index").sa_rate == 2
        verify_index(load_index("r.index"))
    else:
        answer = index_reference("-o", "r.index", "--verify")
        assert answer.last.startswith("index_reference.py: error: r.index: no such index")
    assert index_reference("r.fa", "-o", "r.index", "--sa-rate", 3, "--verify").rc == 0
    assert sorted(os.listdir(tmp_path)) == ["r.fa", "r.index"]
    assert load_index("r.index").sa_rate == 3


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_ended_while_the_reverse_is_added(index_reference, fasta, tmp_path, how):
    assert index_reference("r.fa", "-o", "both", "--with-reverse").rc == 0
    assert index_reference("r.fa", "-o", "r.index").rc == 0
    before = contents("r.index")
    rc, _, parts = stop_while_writing(tmp_path, how, "--with-reverse")
    assert rc == (-how if how == signal.SIGKILL else 128 + how)
    assert len(parts) == 1
    assert contents("r.index") == before
    assert index_reference("-o", "r.index", "--verify").rc == 0
    assert index_reference("-o", "r.index", "--with-reverse", "--verify").rc == 0
    assert contents("r.index") == contents("both")
    assert sorted(os.listdir(tmp_path)) == ["both", "r.fa", "r.index"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_while_writing(fasta, tmp_path, how):
    rc, err, parts = stop_while_writing(tmp_path, how)
    assert rc == 128 + how
    assert err.splitlines()[-1].endswith("interrupted: no output file was written")
    assert "Traceback" not in err
    assert len(parts) == 1
    assert os.listdir(tmp_path) == ["r.fa"]


@pytest.fixture
def small_disk(tmp_path):
    """Mount a file system of 128 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", disk]
    if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_full_disk(index_reference, fasta, small_disk):
    # The table of 8-mers takes 512 KiB.
    answer = index_reference("r.fa", "-o", small_disk / "i", "--prefix-length", 8)
    assert answer.rc == 4
    assert answer.out == ""
    assert answer.last == (
        f"index_reference.py: error: {small_disk / 'i'}: the disk is full: free some space, or "
        "write elsewhere, and run again"
    )
    assert os.listdir(small_disk) == []
    assert index_reference("r.fa", "-o", small_disk / "i", "--prefix-length", 2).rc == 0
    before = contents(small_disk / "i")
    (small_disk / "filler").write_bytes(bytes(small_disk_left(small_disk)))
    answer = index_reference("-o", small_disk / "i", "--with-reverse")
    assert answer.rc == 4
    assert answer.last.endswith(
        ": the disk is full: free some space, or write elsewhere, and run again"
    )
    assert contents(small_disk / "i") == before
    assert sorted(os.listdir(small_disk)) == ["filler", "i"]
    gc.collect()  # arrays mapped from files on the disk


def small_disk_left(disk) -> int:
    left = os.statvfs(disk)
    return left.f_bavail * left.f_frsize


def test_a_limit_on_the_size_of_files(index_reference, fasta, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        answer = index_reference("r.fa", "-o", "i", "--prefix-length", 8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert answer.rc == 4
    assert answer.last == (
        "index_reference.py: error: i: the file is larger than allowed: raise the limit (ulimit "
        "-f), or write elsewhere"
    )
    assert os.listdir(tmp_path) == ["r.fa"]


def test_a_folder_that_may_not_be_written(index_reference, fasta, tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    answer = index_reference("r.fa", "-o", locked / "i")
    assert answer == (1, "", f"index_reference.py: error: {locked}: no permission to write here: "
                      "choose another output")  # fmt: skip


def test_a_gpu_that_is_too_small_leaves_the_work_to_the_cpu(
    index_reference, program, tmp_path, monkeypatch
):
    (tmp_path / "small.fa").write_bytes(FASTA)
    used = []

    def build(reference, parameters, backend, *further):
        used.append(backend)
        if backend == "cuda":
            raise GpuMemoryError(
                "sorting requires 75.0 GB of GPU memory, but only 20.0 GB are free"
            )
        return build_index(reference, parameters, backend, *further)

    monkeypatch.setattr(program, "build_index", build)
    monkeypatch.setattr(program, "choose_engine", lambda requested: "cuda")
    monkeypatch.setattr(program, "compile_first", lambda *_: None)
    said = []
    monkeypatch.setattr(program, "say", said.append)
    assert index_reference("small.fa", "-o", "small.index", "--verify").rc == 0
    assert used == ["cuda", "cpu"]
    assert (
        "sorting requires 75.0 GB of GPU memory, but only 20.0 GB are free: continuing on the CPU"
        in said
    )
    answer = index_reference("small.fa", "-o", "other.index", "--backend", "cuda")
    assert answer == (
        3,
        "",
        "index_reference.py: error: sorting requires 75.0 GB of GPU memory, but only 20.0 GB "
        "are free: use --backend cpu, or a GPU with more memory",
    )


def test_an_index_in_chunks(index_reference, tmp_path):
    rng = np.random.default_rng(13)
    bases = rng.choice(np.frombuffer(b"ACGT", np.uint8), 5_500).tobytes()
    (tmp_path / "r.fa").write_bytes(b">a\n" + bases + b"\n" + FASTA)
    found = []
    for threads in (1, 3):
        options = ("--chunk-bases", 2000, "--threads", threads, "--backend", "cpu", "--verify")
        assert index_reference("r.fa", "-o", "r.chunks", *options).rc == 0
        folder = tmp_path / "r.chunks"
        found.append({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert found[0] == found[1]
    index = open_index("r.chunks")
    assert [chunk.start for chunk in index.chunks] == [0, 2000, 4000]
    assert not index.has_reverse
    assert index_reference("-o", "r.chunks", "--with-reverse", "--verify").rc == 0
    assert open_index("r.chunks").has_reverse
    # A killed run may have added it to some of the chunks only.
    for path in (tmp_path / "r.chunks/chunk-2").iterdir():
        path.unlink()
    for path, content in found[0].items():
        if path.parent.name == "chunk-2":
            path.write_bytes(content)
    assert not open_index("r.chunks").has_reverse
    assert index_reference("-o", "r.chunks", "--with-reverse", "--verify").rc == 0
    assert open_index("r.chunks").has_reverse
    # An ordinary index replaces it.
    assert index_reference("r.fa", "-o", "r.chunks", "--backend", "cpu").rc == 0
    assert load_index("r.chunks").reference.names == ("a", "chr1", "chr2")


def test_chunks_that_cannot_be_made(index_reference, fasta, tmp_path):
    index_reference("r.fa", "-o", "r.index", "--backend", "cpu")
    answer = index_reference("-o", "r.index", "--chunk-bases", 1000)
    assert answer.rc == 2
    assert answer.last.endswith(
        "--chunk-bases requires REF.fa: chunks are cut when an index is built"
    )
    (tmp_path / "long.fa").write_bytes(b">a\n" + b"ACGTT" * 200_300)
    answer = index_reference("long.fa", "-o", "l.index", "--chunk-bases", 1000, "--backend", "cpu")
    assert answer.rc == 2
    assert answer.last.endswith(
        "1,002 chunks exceed the maximum of 1,000: use a larger --chunk-bases"
    )
    assert not (tmp_path / "l.index").exists()
