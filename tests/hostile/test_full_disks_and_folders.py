"""Each writer on a full disk, with a limit on file sizes, and in a read-only folder.

The result is always one sentence and no partial file, and the next run succeeds.
"""

import contextlib
import re
import resource
import shutil
import subprocess

import pytest

from tests.helpers.cases.every_writer import INPUTS, MAP, PREPARATIONS, WRITERS, command
from tests.helpers.programs.programs_here import run_here

LARGER = r"the file is larger than allowed: raise the limit \(ulimit -f\)"

#: A scan knows in advance how much it will write.
FULL = (
    r": error: (?!.*\.part)[^:]*/[^:]+: the disk is full: free some space, or write elsewhere"
    r"|hits would take about .* free: "
)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Write the inputs in a folder whose name breaks careless quoting."""
    folder = tmp_path_factory.mktemp("given") / "größe 100 % 'n' \"x\" $HOME"
    folder.mkdir()
    for name, text in INPUTS.items():
        (folder / name).write_bytes(text)
    for words in PREPARATIONS:
        done = run_here(*command(words, folder, folder), folder=folder)
        assert done.rc == 0, done.said
    return folder


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """Mount a file system of 256 KiB."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def write(what, given, output):
    return run_here(*command(WRITERS[what], given, output), folder=output)


@pytest.mark.parametrize("what", WRITERS)
def test_every_writer_and_then_without_room(given, disk, tmp_path, what):
    output = tmp_path / "äußeres 50 %"
    output.mkdir()
    done = write(what, given, output)
    assert done.rc == 0, done.said
    assert done.left
    expected = done.left
    # A limit on file sizes acts like a quota, or a file system with a maximum file size.
    shutil.rmtree(output)
    output.mkdir()
    with file_size_limit(60):
        done = write(what, given, output)
    check_refusal(done, LARGER)
    # A full disk.
    filler = disk / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    done = write(what, given, disk)
    check_refusal(done, FULL, ["filler"])
    filler.unlink()
    # A disk mounted read-only.
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    try:
        done = write(what, given, disk)
    finally:
        subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    check_refusal(done, "no permission", rc=1)
    # Afterwards the run succeeds.
    done = write(what, given, disk)
    assert done.rc == 0, done.said
    assert done.left == expected
    for path in list(disk.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


OTHER_OUTPUTS = {
    "statistics": (*MAP, "-o", "OUT/o.bam", "--stats", "OUT/missing/o.json"),
    "statistics of loci": ("find_alignments", *MAP[1:], "--edits", "1", "-o", "OUT/o.bam",
                           "--stats", "OUT/missing/o.json"),
    "timeline": (*MAP, "-o", "OUT/o.bam", "--timeline", "OUT/missing/o.json"),
    "alignments": ("search_database", "--queries", "IN/p.fa", "--database", "IN/p.fa",
                   "-o", "OUT/o.tsv", "--alignments", "OUT/missing/o.txt"),
    "second reads": ("simulate_reads", "--reference", "IN/g.fa", "--pairs", "2",
                     "-1", "OUT/o.fq", "-2", "OUT/missing/o.fq"),
    "variants": ("simulate_reads", "--reference", "IN/g.fa", "--reads", "2",
                 "-1", "OUT/o.fq", "--vcf", "OUT/missing/o.vcf"),
}  # fmt: skip


@pytest.mark.parametrize("what", [*WRITERS, *OTHER_OUTPUTS])
def test_no_writer_makes_a_missing_folder(given, tmp_path, what):
    """Like samtools, which also writes no output if a folder is misspelt."""
    words = OTHER_OUTPUTS.get(what) or [
        word.replace("OUT/", "OUT/missing/") for word in WRITERS[what]
    ]
    done = run_here(*command(words, given, tmp_path), folder=tmp_path)
    assert done.rc == 2, done
    assert done.last_line.endswith(
        f": no such folder {tmp_path}/missing: create it, or choose another output"
    )
    assert done.left == []


def check_refusal(done, pattern, left=(), rc=4):
    assert done.rc == rc or (done.rc == 2 and "hits would take" in done.last_line), done
    assert re.search(pattern, done.last_line), done
    assert "Traceback" not in done.said
    assert done.left == list(left)


@contextlib.contextmanager
def file_size_limit(n_bytes):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
