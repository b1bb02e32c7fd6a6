"""Plain and compressed files in blocks: no part of a file is dropped silently."""

import bz2
import errno
import gc
import gzip
import itertools
import lzma
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xopen
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.bam.bgzf import BLOCK_BYTES, compressed_block
from bwarp.errors import InputError
from bwarp.io import compressed_files as files
from bwarp.io.compressed_files import blocks_from_process, read_blocks

EXAMPLES = int(os.environ.get("BWARP_EXAMPLES", 40))

TEXT = b"".join(b"@read%d\nACGTTGCA\n+\nIIIIIIII\n" % i for i in range(400))


def zstd(text: bytes) -> bytes:
    # Like the zstd program; without the checksum, much damage cannot be detected.
    return xopen.zstd.compress(text, options={xopen.zstd.CompressionParameter.checksum_flag: 1})


def bgzf(text: bytes) -> bytes:
    starts = range(0, len(text) or 1, BLOCK_BYTES)
    return b"".join(compressed_block(text[start : start + BLOCK_BYTES]) for start in starts)


COMPRESSORS = {
    "gz": gzip.compress,
    "bgzf": bgzf,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
MAGIC = {"gz": 2, "bgzf": 2, "bz2": 3, "xz": 6, "zst": 4}
CUT_OFF = "the compressed file is truncated: download or write it again"


def content(path, stored: bytes, **options) -> bytes | str:
    """Return the result of reading these bytes: the content, or the message without the file name.

    Also checks that several threads give the same result.
    """
    path.write_bytes(stored)

    def read(threads: int) -> bytes | str:
        try:
            return b"".join(read_blocks(path, threads=threads, **options))
        except InputError as error:
            return str(error).removeprefix(f"{path}: ")

    found = read(1)
    assert read(3) == found
    return found


def refused(found) -> bool:
    return isinstance(found, str) and re.fullmatch("the compressed file .*", found) is not None


@pytest.fixture
def path(tmp_path):
    return tmp_path / "reads.fq"


def test_blocks(path):
    path.write_bytes(TEXT)
    assert [len(block) for block in read_blocks(path, 5000)] == [5000, 5000, len(TEXT) - 10_000]


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_blocks_of_a_compressed_file(path, kind):
    text = TEXT * 500
    path.write_bytes(COMPRESSORS[kind](text))
    sizes = [len(block) for block in read_blocks(path, 1 << 20)]
    assert sum(sizes) == len(text)
    assert min(sizes[:-1]) >= 1 << 20
    assert max(sizes) < 1 << 21


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("name", ["reads", "reads.gz", "reads.xz"])
def test_compressed_with_any_name(tmp_path, kind, name):
    compress = COMPRESSORS[kind]
    assert content(tmp_path / name, compress(TEXT), block_bytes=3000) == TEXT
    # Concatenated streams, as from bgzip and cat, some of them empty.
    half = len(TEXT) // 2
    parts = [compress(part) for part in (b"", TEXT[:half], b"", TEXT[half:], b"")]
    assert content(tmp_path / name, b"".join(parts), block_bytes=3000) == TEXT


@pytest.mark.parametrize("name", ["reads.gz", "reads.bz2", "reads.zst"])
def test_plain_despite_its_name(tmp_path, name):
    assert content(tmp_path / name, TEXT) == TEXT


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("first", [b"", TEXT])
def test_cut_off_anywhere(path, kind, first):
    before, last = COMPRESSORS[kind](first) if first else b"", COMPRESSORS[kind](TEXT)
    start = 1 if first else MAGIC[kind]
    lengths = {*range(start, start + 20), *range(start, len(last), 1 + len(last) // 150)}
    for length in sorted({*lengths, *range(len(last) - 12, len(last))}):
        assert content(path, before + last[:length]) == CUT_OFF, length


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_a_flipped_bit_in_a_second_stream(path, kind):
    """In particular near its start, where other readers take it for trailing data."""
    stream = COMPRESSORS[kind](TEXT)
    damaged = 0
    for at in sorted({*range(30), *range(0, len(stream), 1 + len(stream) // 300)}):
        for bit in range(8) if at < 30 else [at % 8]:
            flipped = stream[:at] + bytes([stream[at] ^ 1 << bit]) + stream[at + 1 :]
            found = content(path, stream + flipped)
            # Some bits have no meaning, such as the time in a gzip header.
            assert refused(found) or found == TEXT + TEXT, (at, bit, found)
            damaged += refused(found)
    assert damaged > 100


JUNK = [b"x", b"\n", b"rubbish behind the end", b"\x00\x00\x00\x00rubbish", b"\xff" * 1000, TEXT]


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("junk", JUNK)
def test_anything_behind_a_stream_is_refused(path, kind, junk):
    stream = COMPRESSORS[kind](TEXT)
    assert refused(content(path, stream + junk))
    assert refused(content(path, stream + junk + stream))
    assert refused(content(path, stream + stream[: MAGIC[kind]] + junk))


@pytest.mark.parametrize("kind", ["gz", "bgzf", "bz2", "xz"])
@pytest.mark.parametrize("n", [1, 4, 512, 300_000])
def test_zeros_behind_a_stream_are_padding(path, kind, n):
    """Tapes and `xz` write such zeros; data after them is read."""
    stream = COMPRESSORS[kind](TEXT)
    assert content(path, stream + bytes(n)) == TEXT
    assert content(path, stream + bytes(n) + stream + bytes(n)) == TEXT + TEXT
    assert refused(content(path, stream + bytes(n) + b"x"))


@pytest.mark.parametrize("kind", ["bz2", "xz", "zst"])
def test_another_kind_of_stream_behind_one_is_refused(path, kind):
    assert refused(content(path, COMPRESSORS[kind](TEXT) + gzip.compress(TEXT)))
    assert refused(content(path, gzip.compress(TEXT) + COMPRESSORS[kind](TEXT)))


def test_blocks_of_bgzf_with_and_without_the_last_empty_one(path):
    # BGZF from sequencers has no end marker, so it must not be required.
    blocks = [compressed_block(TEXT[i : i + 3000]) for i in range(0, len(TEXT), 3000)]
    assert content(path, b"".join(blocks)) == TEXT
    assert (
        content(path, b"".join([*blocks, compressed_block(b""), gzip.compress(TEXT)]))
        == TEXT + TEXT
    )
    assert content(path, gzip.compress(TEXT) + b"".join(blocks)) == TEXT + TEXT
    assert content(path, b"".join(blocks)[:-3]) == CUT_OFF


@settings(max_examples=5 * EXAMPLES, deadline=None, derandomize=EXAMPLES == 40)
@given(st.data())
def test_streams_put_together_anyhow(tmp_path_factory, data):
    """Complete streams, padding, and at most one error: all content, or an error message."""
    kind = data.draw(st.sampled_from(["gz", "bgzf", "bz2", "xz"]))
    stored, whole = COMPRESSORS[kind](b"@"), b"@"
    for _ in range(data.draw(st.integers(0, 6))):
        part = TEXT[: data.draw(st.sampled_from([0, 1, 700, 9000]))]
        stored += COMPRESSORS[kind](part) + bytes(data.draw(st.sampled_from([0, 0, 1, 131_072])))
        whole += part
    wrong = data.draw(st.sampled_from(["nothing", "flipped", "cut", "put in"]))
    at = data.draw(st.integers(MAGIC[kind], len(stored) - 1))
    if wrong == "flipped":
        stored = (
            stored[:at] + bytes([stored[at] ^ data.draw(st.integers(1, 255))]) + stored[at + 1 :]
        )
    elif wrong == "cut":
        stored = stored[:at]
    elif wrong == "put in":
        stored = stored[:at] + data.draw(st.binary(min_size=1, max_size=20)) + stored[at:]
    found = content(tmp_path_factory.getbasetemp() / "streams", stored)
    if wrong == "nothing":
        assert found == whole
    elif wrong == "cut" and not refused(found):
        assert whole.startswith(found)
        assert len(stored) in ends_of_streams(kind, stored)
    else:
        assert refused(found) or found == whole


def ends_of_streams(kind: str, stored: bytes) -> set[int]:
    """Return where a file may end: after each stream, and among the zeros that follow."""
    decompress = {"gz": gzip, "bgzf": gzip, "bz2": bz2, "xz": lzma}[kind].decompress
    ends = set()
    stripped = stored.rstrip(b"\0")
    for end in range(len(stripped), len(stored) + 1):
        try:
            decompress(stored[:end])
        except (EOFError, ValueError, OSError, lzma.LZMAError):
            continue
        ends |= set(range(end, len(stored) + 1))
        break
    return ends


@pytest.mark.parametrize("kind", ["gz", "bgzf", "bz2", "xz"])
def test_rubbish_after_a_magic_number(path, kind):
    rubbish = np.random.default_rng(2).integers(0, 256, 5000).astype(np.uint8).tobytes()
    assert refused(content(path, COMPRESSORS[kind](b"")[:6] + rubbish))


@pytest.fixture
def standard_input():
    """Return a function that replaces standard input of this process by a pipe with bytes."""
    kept = os.dup(0)
    reader, writer = os.pipe()
    os.dup2(reader, 0)
    os.close(reader)

    def put(data: bytes) -> None:
        assert len(data) < 1 << 16  # which a pipe takes before it is read
        with open(writer, "wb") as file:
            file.write(data)

    yield put
    os.dup2(kept, 0)
    os.close(kept)


@pytest.mark.parametrize("compress", [bytes, *COMPRESSORS.values()])
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input(compress, name, tmp_path, monkeypatch, standard_input):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_bytes(b"a file of that name")
    standard_input(compress(TEXT) * 2)
    assert b"".join(read_blocks(name)) == TEXT * 2
    os.fstat(0)  # it is not closed


def test_empty_standard_input(standard_input):
    standard_input(b"")
    assert list(read_blocks("-")) == []


def test_a_pipe_with_the_name_of_a_compressed_file(tmp_path):
    path = tmp_path / "reads.fq.gz"
    os.mkfifo(path)
    with subprocess.Popen(["sh", "-c", f"cat > '{path}'"], stdin=subprocess.PIPE) as writer:
        writer.stdin.write(TEXT)
        writer.stdin.close()
        assert b"".join(read_blocks(path)) == TEXT


MARK = b"\xef\xbb\xbf"


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress])
@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5000])
def test_a_byte_order_mark_is_left_out(path, compress, block_bytes):
    for text in (TEXT, b"@", b""):
        assert content(path, compress(MARK + text), block_bytes=block_bytes) == text
    for text in (MARK[:2], b"@" + MARK, MARK[:2] + b"@"):
        assert content(path, compress(text), block_bytes=block_bytes) == text
    path.write_bytes(compress(MARK + TEXT))
    assert all(read_blocks(path, block_bytes))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_two_bytes_a_letter(path, encoding):
    mark = "" if encoding == "utf-16" else "\ufeff"
    for text in ("", "@a\nA\n+\nI\n"):
        assert content(path, (mark + text).encode(encoding)) == (
            "the text is UTF-16: convert it to plain text (iconv -f UTF-16 -t UTF-8)"
        )


def test_errors_of_the_system_are_unchanged(tmp_path):
    with pytest.raises(FileNotFoundError):
        next(read_blocks(tmp_path / "absent"))
    with pytest.raises(IsADirectoryError):
        next(read_blocks(tmp_path))


@pytest.mark.parametrize("compress", [bytes, *COMPRESSORS.values()])
def test_a_file_is_closed_when_reading_stops_early(path, compress):
    path.write_bytes(compress(TEXT))
    blocks = read_blocks(path, 100)
    next(blocks)
    blocks.close()  # an open file would be a ResourceWarning, and that an error


@pytest.fixture
def by_process(monkeypatch):
    """Make all gzip files large enough for a separate process; record these processes."""
    started = []

    class Started(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            started.append(self)

    monkeypatch.setattr(files, "WORTH_A_PROCESS", 0)
    monkeypatch.setattr(files.subprocess, "Popen", Started)
    return started


@pytest.mark.parametrize("name", ["reads.gz", "- reads of \u00e9.gz"])
def test_a_process_inflates(tmp_path, monkeypatch, by_process, name):
    text = TEXT * 300
    stored = gzip.compress(text[:70_000]) + gzip.compress(b"") + gzip.compress(text[70_000:])
    (tmp_path / name).write_bytes(stored)
    monkeypatch.chdir(tmp_path)
    blocks = list(read_blocks(name, 100_000, threads=4))
    assert b"".join(blocks) == text
    assert {len(block) for block in blocks[1:-1]} == {100_000}
    assert [process.returncode for process in by_process] == [0]


def test_few_threads_and_bgzf_take_no_process(path, by_process):
    path.write_bytes(gzip.compress(TEXT))
    assert b"".join(read_blocks(path, threads=3)) == TEXT
    path.write_bytes(bgzf(TEXT))
    assert b"".join(read_blocks(path, threads=4)) == TEXT
    assert by_process == []


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_file_that_is_standard_input(path, name):
    """It is seekable like a named file, and a separate process has its own standard input."""
    path.write_bytes(gzip.compress(TEXT))
    read = (
        "import sys\n"
        "from bwarp.io import compressed_files\n"
        "compressed_files.WORTH_A_PROCESS = 0\n"
        "for block in compressed_files.read_blocks(sys.argv[1], threads=4):\n"
        "    sys.stdout.buffer.write(block)\n"
    )
    with open(path, "rb") as file:
        command = [sys.executable, "-c", read, name]
        found = subprocess.run(command, stdin=file, capture_output=True, check=True).stdout
    assert found == TEXT


def test_output_of_python_is_not_taken_for_text(path, monkeypatch, by_process):
    """A module in the working folder, and one that Python imports at its start."""
    path.write_bytes(gzip.compress(TEXT))
    for name in ("shutil.py", "struct.py", "sitecustomize.py"):
        (path.parent / name).write_text("print('not a read')\n")
    monkeypatch.chdir(path.parent)
    assert b"".join(read_blocks(path, threads=4)) == TEXT
    (path.parent / "shutil.py").unlink()
    (path.parent / "struct.py").unlink()
    monkeypatch.setenv("PYTHONPATH", str(path.parent), os.pathsep)
    assert b"".join(read_blocks(path, threads=4)) == TEXT
    assert [process.returncode for process in by_process] == [0, 0]


@pytest.mark.parametrize("change", ["cut off", "damaged", "zeros behind", "text behind"])
def test_errors_are_reported_with_a_process(path, by_process, change):
    stored = bytearray(gzip.compress(os.urandom(100_000).hex().encode() * 20) * 2)
    if change == "cut off":
        del stored[-5000:]
    elif change == "damaged":
        stored[len(stored) * 3 // 4] ^= 255
    else:
        stored += b"\0" * 1000 if change == "zeros behind" else b"text"
    path.write_bytes(stored)

    def read(threads: int) -> bytes | str:
        try:
            return b"".join(read_blocks(path, 50_000, threads))
        except InputError as error:
            return str(error)

    assert read(4) == read(3)
    assert (by_process[-1].returncode == 0) == (change == "zeros behind")


def test_a_process_that_fails_is_replaced(path, monkeypatch, by_process):
    """For example if the machine has no memory for it."""
    path.write_bytes(gzip.compress(TEXT * 3000))
    expected = list(read_blocks(path, 1 << 20, threads=3))
    blocks = read_blocks(path, 1 << 20, threads=4)
    found = [next(blocks), next(blocks)]
    by_process[0].kill()
    assert b"".join([*found, *blocks]) == b"".join(expected)
    assert by_process[0].returncode != 0
    for program in ("/bin/false", "/bin/true", "/not/there", ""):
        monkeypatch.setattr(files.sys, "executable", program)
        assert b"".join(read_blocks(path, 1 << 20, threads=4)) == b"".join(expected)


def test_a_process_ends_if_reading_stops(path, by_process):
    path.write_bytes(gzip.compress(TEXT * 3000))
    blocks = read_blocks(path, 1 << 20, threads=4)
    next(blocks)
    blocks.close()
    assert by_process[0].returncode is not None


def from_process(path, block_bytes: int) -> tuple[list[bytes], int | None]:
    """Return the blocks from a process, all kept until the last, and its return value."""
    source, blocks = blocks_from_process(path, block_bytes), []
    while True:
        try:
            blocks.append(next(source))
        except StopIteration as end:
            return list(map(bytes, blocks)), end.value


#: Data without similar parts.
MIXED = np.random.default_rng(5).integers(0, 256, 40_000).astype(np.uint8).tobytes().hex().encode()

SLOT = 1000
RING = files._SLOTS * SLOT


@pytest.mark.parametrize("streams", [1, 7])
@pytest.mark.parametrize("n", [0, 1, SLOT, 2 * SLOT, RING, RING + SLOT, 3 * RING])
def test_a_ring_of_slots(path, by_process, n, streams):
    """Data that fill slots, and the ring, and one byte more or less."""
    for size in {max(n - 1, 0), n, n + 1}:
        cuts = [size * stream // streams for stream in range(streams + 1)]
        parts = [MIXED[start:stop] for start, stop in itertools.pairwise(cuts)]
        path.write_bytes(b"".join(map(gzip.compress, parts)))
        blocks, after = from_process(path, SLOT)
        assert after is None
        assert b"".join(blocks) == MIXED[:size]
        assert {len(block) for block in blocks[:-1]} <= {SLOT}
    assert {process.returncode for process in by_process} == {0}


def test_a_slot_is_smaller_than_a_large_block(path, monkeypatch):
    monkeypatch.setattr(files, "_LARGEST_SLOT", SLOT)
    path.write_bytes(gzip.compress(MIXED))
    blocks, after = from_process(path, 1 << 40)
    assert (b"".join(blocks), after) == (MIXED, None)
    assert {len(block) for block in blocks} == {SLOT}


@pytest.mark.parametrize("block_bytes", [SLOT, 1 << 20])
@pytest.mark.parametrize("change", ["cut off", "damaged", "text behind", "no gzip"])
def test_good_data_precede_an_error(path, by_process, change, block_bytes):
    """Two streams; the second one has an error in its middle, or after it."""
    text = MIXED * 50
    first, second = gzip.compress(text), bytearray(gzip.compress(text))
    if change == "cut off":
        del second[len(second) // 2 :]
    elif change == "damaged":
        second[len(second) // 2] ^= 255
    else:
        second = second + b"text" if change == "text behind" else b"text"
    path.write_bytes(first + second)
    blocks, after = from_process(path, block_bytes)
    found = b"".join(blocks)
    assert after == len(found)
    # A checksum comes after the data, which are already handed over.
    assert found[: len(text)] == text[: len(found)]
    assert change == "no gzip" or len(found) > len(text)
    assert [process.returncode for process in by_process] == [1]


def test_a_missing_file_and_one_that_is_not_gzip(path, by_process):
    assert from_process(path, SLOT) == ([], 0)
    path.write_bytes(b"text")
    assert from_process(path, SLOT) == ([], 0)
    assert [process.returncode for process in by_process] == [1]


def no_memory(*_):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


@pytest.mark.parametrize("lacking", ["function", "system call", "memory", "process"])
def test_no_process_without_memory_for_both(path, monkeypatch, by_process, lacking):
    path.write_bytes(gzip.compress(TEXT))
    if lacking == "function":
        monkeypatch.delattr(os, "memfd_create")
    elif lacking == "process":
        monkeypatch.setattr(files.subprocess, "Popen", lambda *_, **__: no_memory())
    else:
        name = ("os", "memfd_create") if lacking == "system call" else ("mmap", "mmap")
        monkeypatch.setattr(getattr(files, name[0]), name[1], lambda *_, **__: no_memory())
    before = open_files()
    assert from_process(path, SLOT) == ([], 0)
    assert open_files() == before
    assert b"".join(read_blocks(path, threads=4)) == TEXT
    assert by_process == []


def open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
def rings(monkeypatch):
    """Return the open files of memory that programs and processes share."""
    make, made = os.memfd_create, []

    def make_and_keep(name):
        number = make(name)
        made.append(os.dup(number))
        return number

    monkeypatch.setattr(os, "memfd_create", make_and_keep)
    yield made
    for number in made:
        os.close(number)


def wait_until(done) -> None:
    for _ in range(3000):
        if done():
            return
        time.sleep(0.01)
    pytest.fail("it has not come to that within 30 seconds")


def test_the_process_works_ahead(path, by_process, rings):
    """If the reader does not read, it fills all slots, and no more."""
    path.write_bytes(gzip.compress(MIXED))
    blocks = blocks_from_process(path, SLOT)
    found = []
    for n in range(1, 9):
        found.append(next(blocks))
        # Slots that were read contain the data after the ring.
        ahead = sorted(range(n, n + files._SLOTS), key=lambda at: at % files._SLOTS)
        expected = b"".join(MIXED[at * SLOT : (at + 1) * SLOT] for at in ahead)
        wait_until(lambda expected=expected: os.pread(rings[0], RING + 1, 0) == expected)
        time.sleep(0.02)
        assert os.pread(rings[0], RING + 1, 0) == expected
    assert by_process[0].poll() is None
    assert b"".join([*found, *blocks]) == MIXED
    assert by_process[0].returncode == 0


@pytest.mark.parametrize("taken", [0, 1, 10])
@pytest.mark.parametrize("size", [SLOT // 2, RING, len(MIXED)])
def test_a_process_ends_with_its_reader(path, by_process, size, taken):
    """It ends whether it waits for a free slot or has nothing left to do."""
    path.write_bytes(gzip.compress(MIXED[:size]))
    before = open_files()
    blocks = blocks_from_process(path, SLOT)
    for _ in range(taken):
        next(blocks, None)
    blocks.close()
    assert all(process.returncode is not None for process in by_process)
    assert len(by_process) == (taken > 0)
    del blocks
    assert open_files() == before


@pytest.mark.parametrize("size", [RING // 2, len(MIXED)])
def test_output_of_a_killed_process_is_read(path, by_process, rings, size):
    path.write_bytes(gzip.compress(MIXED[:size]))
    blocks = blocks_from_process(path, SLOT)
    found = [next(blocks)]
    ahead = MIXED[SLOT : min(size, RING)]
    wait_until(lambda: os.pread(rings[0], len(ahead), SLOT) == ahead)
    by_process[0].kill()
    by_process[0].wait()
    while block := next(blocks, None):
        found.append(block)
    # One more slot is full if the process has got that far.
    assert len(b"".join(found)) in {min(size, RING) - SLOT, min(size, RING), RING + SLOT}
    assert MIXED.startswith(b"".join(found))


def test_a_process_ends_where_its_program_is_killed(path):
    path.write_bytes(gzip.compress(MIXED))
    read = (
        "import sys, time\n"
        "from bwarp.io import compressed_files\n"
        "class Told(compressed_files.subprocess.Popen):\n"
        "    def __init__(self, *arguments, **options):\n"
        "        super().__init__(*arguments, **options)\n"
        "        print(self.pid, flush=True)\n"
        "compressed_files.subprocess.Popen = Told\n"
        "blocks = compressed_files.blocks_from_process(sys.argv[1], 1000)\n"
        "next(blocks)\n"
        "print('read', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", read, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        number = int(program.stdout.readline())
        assert program.stdout.readline() == "read\n"
        assert not is_gone(number)
        program.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(number))


def is_gone(number: int) -> bool:
    """Return whether a process has ended, even if not waited for."""
    try:
        with open(f"/proc/{number}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
