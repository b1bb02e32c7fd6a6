"""Writing CRAM: processes encode pieces of the sorted records, and one thread joins their files.

    sorted records   |     piece 0     |     piece 1     | 2 ...   of RECORDS_A_PIECE records each
    samtools view    definition, header, containers, end           a file per piece
    joined           definition, header, containers of 0, containers of 1, ..., end

htslib adapts its compression to the slices that it encoded before. All pieces but the last have the
same number of records, so the bytes are the same for any number of processes.
"""

import os
import queue
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from deflate import gzip_compress
from isal import isal_zlib

from bwarp.bam.block_writer import BlockWriter
from bwarp.bam.compression_engine import STORED
from bwarp.bam.header import BamHeader, header_bytes
from bwarp.bam.samtools import CALL, environment, failure
from bwarp.checks.checker import Checker
from bwarp.runtime.signals import not_ended, undone_if_ended
from bwarp.runtime.timeline import on_timeline

#: On the first two slices of a piece, of 10,000 records each, htslib tries all its methods of
#: compression, so smaller pieces take longer. Larger pieces take more memory, and processes wait
#: longer for the last one.
RECORDS_A_PIECE = 100_000

#: Compared with htslib's default of 5, encoding takes an eighth less time, and files of version 3.0
#: are 1.4 % larger (3.1: 0.2 %).
_LEVEL = 4


@contextmanager
def cram_file(
    path: Path,
    header: BamHeader,
    threads: int,
    output: str,
    version: str,
    checker: Checker | None = None,
) -> Iterator["CramWriter"]:
    """Write a CRAM file of sorted records, and its index next to it (.crai).

    Parameters
    ----------
    path : Path
        The file; its folder contains the sequences of the contigs, named by their checksums.
    header : BamHeader
    threads : int
        Number of processes.
    output : str
        Name of the file in error messages.
    version : str
        One of `CRAM_VERSIONS`.
    checker : Checker, optional
        Receives every record.
    """
    with open(path, "wb") as file:
        encoders = _Encoders(path.parent, output, version)
        writer = CramWriter(file, path.name, header, threads, encoders, checker)
        with undone_if_ended(encoders.stop):
            try:
                yield writer
                index = writer.finish()
            finally:
                writer.stop()
    path.with_name(f"{path.name}.crai").write_bytes(gzip_compress(index, 6))


# --------------------------------------------------------------------------------------------------
# Pieces of the records.


class CramWriter:
    """Takes sorted records as `BlockWriter` does. The caller must finally call `stop`."""

    #: The records are encoded on the host.
    compresses_on_gpu = False

    def __init__(
        self,
        file: IO[bytes],
        name: str,
        header: BamHeader,
        threads: int,
        encoders: "_Encoders",
        checker: Checker | None = None,
    ):
        self._header = header_bytes(header)
        self._checker = checker
        self._encoders = encoders
        # More jobs than threads, so that no thread is idle while the caller waits for a piece.
        self._most_jobs = 2 * threads
        self._pool = ThreadPoolExecutor(threads)
        self._jobs: deque[tuple[Future, int]] = deque()
        self._joined = _JoinedFile(file, name.encode())
        #: Records that do not fill a piece yet: arguments of `BlockWriter.write`.
        self._parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        self._waiting = 0

    def write(self, data: np.ndarray, starts: np.ndarray, order: np.ndarray | None = None) -> None:
        """Write the records at `starts` (n + 1) of `data`, in their own order or in `order`.

        The caller must not change the arrays before `finish`.
        """
        if self._checker is not None:
            self._checker.add(data, starts, order)
        if order is None:
            order = np.arange(starts.size - 1, dtype=np.uint32)
        while order.size:
            part = order[: RECORDS_A_PIECE - self._waiting]
            self._parts.append((data, starts, part))
            self._waiting += part.size
            order = order[part.size :]
            if self._waiting == RECORDS_A_PIECE:
                self._begin_piece()

    def finish(self) -> bytes:
        """Write the remaining records; return the lines of the index."""
        if self._waiting or (self._joined.is_empty and not self._jobs):
            self._begin_piece()
        while self._jobs:
            self._finish_piece()
        return self._joined.finish()

    def stop(self) -> None:
        """Cancel everything that is not written yet."""
        self._encoders.stop()
        self._pool.shutdown(cancel_futures=True)
        self._encoders.close()

    def _begin_piece(self) -> None:
        job = self._pool.submit(self._encoders.encode, self._header, self._parts)
        self._jobs.append((job, self._waiting))
        self._parts, self._waiting = [], 0
        while len(self._jobs) > self._most_jobs:
            self._finish_piece()

    def _finish_piece(self) -> None:
        job, count = self._jobs.popleft()
        self._joined.add(job.result(), count)


# --------------------------------------------------------------------------------------------------
# Processes that encode pieces.


class _Piece(NamedTuple):
    """The CRAM file of a piece, and the lines of its index."""

    file: bytes
    index: bytes


class _Encoders:
    """Processes, one for each thread that calls `encode`, each started when it is first needed."""

    def __init__(self, folder: Path, output: str, version: str):
        self._folder = folder
        self._output = output
        self._version = version
        self._all: list[_Encoder] = []
        self._idle: queue.SimpleQueue[_Encoder] = queue.SimpleQueue()
        self._is_stopped = False

    def encode(self, header: bytes, parts: list) -> _Piece:
        """Return the encoded piece; a thread calls this."""
        try:
            encoder = self._idle.get_nowait()
        except queue.Empty:
            encoder = self._begin()
        piece = encoder.encode(header, parts)
        self._idle.put(encoder)
        return piece

    def stop(self) -> None:
        """End all processes; running calls of `encode` then fail."""
        with not_ended():
            self._is_stopped = True
            for encoder in self._all:
                encoder.stop()

    def close(self) -> None:
        """Close what belonged to the processes, when no thread calls `encode` any more."""
        for encoder in self._all:
            encoder.close()

    def _begin(self) -> "_Encoder":
        with not_ended():
            if self._is_stopped:
                raise ChildProcessError("the processes that encode CRAM were ended")
            name = f"{len(self._all)}.cram"
            self._all.append(_Encoder(self._folder, name, self._output, self._version))
            return self._all[-1]


#: A message with a pipe asks for the next piece; a byte answers when it is encoded. The exit code
#: and standard error report failures.
_ENCODE = f"""{CALL}
import os, socket
messages = socket.socket(fileno=os.dup(0))
while pipes := socket.recv_fds(messages, 1, 1)[1]:
    os.dup2(pipes[0], 0)
    os.close(pipes[0])
    call("view", *sys.argv[1:])
    messages.send(b" ")
"""


class _Encoder:
    """A process that encodes one piece after another to a file in the folder."""

    def __init__(self, folder: Path, name: str, output: str, version: str):
        self._file = folder / name
        self._output = output
        self._said = folder / f"{name}.txt"
        self._messages, theirs = socket.socketpair()
        form = ["-O", f"cram,version={version},level={_LEVEL}", "--write-index"]
        with theirs, open(self._said, "wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _ENCODE, "--no-PG", "-h", *form, "-o", name, "-"],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=folder,
                env=environment(),
            )

    @on_timeline("encode CRAM")
    def encode(self, header: bytes, parts: list) -> _Piece:
        answer = b""
        # If the process has ended, its message says why.
        with suppress(ConnectionError):
            self._send(header, parts)
            answer = self._messages.recv(1)
        if not answer:
            raise self._failure()
        index = self._file.with_name(f"{self._file.name}.crai")
        return _Piece(self._file.read_bytes(), isal_zlib.decompress(index.read_bytes(), 31))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._messages.close()

    def _send(self, header: bytes, parts: list) -> None:
        reading, writing = os.pipe()
        with open(writing, "wb") as pipe:
            with open(reading, "rb"):
                socket.send_fds(self._messages, [b" "], [reading])
            with BlockWriter(pipe, 1, STORED).after(header) as writer:
                for part in parts:
                    writer.write(*part)

    def _failure(self) -> Exception:
        code = self._process.wait()
        return failure(code, self._said.read_bytes(), self._file.parent, self._output, "make")


# --------------------------------------------------------------------------------------------------
# Joining CRAM files of the same header (CRAM format specification 3.1, sections 6 to 8).
#
# A file consists of its definition, and of containers: the header, slices of records, and an empty
# container as end. Containers and slices contain the number of records before them, which changes
# if files are joined, and with it sizes, positions and checksums:
#
#     container   size, contig, start, span, records, *records before*, bases, blocks,
#                 positions of slices, checksum; blocks
#     slice       block: method, kind, id, size, size; contig, start, span, records,
#                 *records before*, ...; checksum

_DEFINITION_BYTES = 26
_NAME_AT = 6


class _JoinedFile:
    """Writes the containers of the pieces to one file.

    Parameters
    ----------
    file : file
    name : bytes
        Name of the file in its definition.
    """

    def __init__(self, file: IO[bytes], name: bytes):
        self._file = file
        self._name = name
        self._size = 0
        self._records = 0
        self._index: list[bytes] = []
        self._end = b""

    @property
    def is_empty(self) -> bool:
        return not self._size

    def add(self, piece: _Piece, count: int) -> None:
        """Write the containers of the next piece, which has `count` records."""
        ends = _ends_of_containers(piece.file)
        if self.is_empty:
            name = self._name[: _DEFINITION_BYTES - _NAME_AT]
            name = name.ljust(_DEFINITION_BYTES - _NAME_AT, b"\0")
            self._write(piece.file[:_NAME_AT] + name + piece.file[_DEFINITION_BYTES : ends[0]])
        moved = {}
        for begin, end in pairwise(ends[:-1]):
            container, slices = _with_records_before(piece.file[begin:end], self._records)
            for old, (new, growth) in slices.items():
                moved[begin, old] = self._size, new, growth
            self._write(container)
        for line in piece.index.splitlines():
            contig, start, span, *at, size = line.split(b"\t")
            begin, new, growth = moved[tuple(map(int, at))]
            if contig == b"-1":
                # With 0, as htslib writes in version 3.1, it finds only the last unmapped slice.
                span = b"1"
            numbers = b"%d\t%d\t%d\n" % (begin, new, int(size) + growth)
            self._index.append(b"\t".join([contig, start, span, numbers]))
        self._end = piece.file[ends[-2] :]
        self._records += count

    def finish(self) -> bytes:
        """Write the end; return the lines of the index."""
        self._write(self._end)
        return b"".join(self._index)

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._size += len(data)


def _ends_of_containers(file: bytes) -> list[int]:
    ends = [_DEFINITION_BYTES]
    while ends[-1] < len(file):
        head = _head_of_container(file, ends[-1])
        ends.append(head.blocks_at + head.size)
    return ends[1:]


class _ContainerHead(NamedTuple):
    """The head of a container: some of its fields, and offsets of others."""

    size: int
    records_at: int
    records_before: int
    bases_at: int
    slices_at: int
    slices: list[int]
    blocks_at: int


def _head_of_container(data: bytes, at: int) -> _ContainerHead:
    size = int.from_bytes(data[at : at + 4], "little")
    records_at = _after_numbers(data, at + 4, 4)
    records_before, bases_at = _number(data, records_at, _UP_TO_64_BITS)
    _, at = _number(data, bases_at, _UP_TO_64_BITS)
    slices_at = _after_numbers(data, at, 1)
    count, at = _number(data, slices_at)
    slices = []
    for _ in range(count):
        position, at = _number(data, at)
        slices.append(position)
    return _ContainerHead(
        size, records_at, records_before, bases_at, slices_at, slices, at + _CHECKSUM_BYTES
    )


def _with_records_before(container: bytes, more: int) -> tuple[bytes, dict[int, tuple[int, int]]]:
    """Return a container with `more` records before it, and what becomes of its slices.

    The second result holds the new position and the growth of the slice at each old position.
    """
    head = _head_of_container(container, 0)
    blocks = container[head.blocks_at :]
    parts, moved, done, grown = [], {}, 0, 0
    for position in head.slices:
        block, end = _with_records_before_slice(blocks, position, more)
        growth = len(block) - (end - position)
        moved[position] = position + grown, growth
        parts += [blocks[done:position], block]
        done, grown = end, grown + growth
    first = b"".join([
        (head.size + grown).to_bytes(4, "little"),
        container[4 : head.records_at],
        _bytes_of_number(head.records_before + more, _UP_TO_64_BITS),
        container[head.bases_at : head.slices_at],
        _bytes_of_number(len(moved)),
        *(_bytes_of_number(position) for position, _ in moved.values()),
    ])  # fmt: skip
    return b"".join([first, _checksum(first), *parts, blocks[done:]]), moved


def _with_records_before_slice(blocks: bytes, begin: int, more: int) -> tuple[bytes, int]:
    """Return the new first block of the slice at `begin`, and the end of the old block."""
    sizes_at = _after_numbers(blocks, begin + 2, 1)
    size, _ = _number(blocks, sizes_at)
    data_at = _after_numbers(blocks, sizes_at, 2)
    records_at = _after_numbers(blocks, data_at, 4)
    records_before, rest_at = _number(blocks, records_at, _UP_TO_64_BITS)
    data = b"".join([
        blocks[data_at:records_at],
        _bytes_of_number(records_before + more, _UP_TO_64_BITS),
        blocks[rest_at : data_at + size],
    ])  # fmt: skip
    block = blocks[begin:sizes_at] + 2 * _bytes_of_number(len(data)) + data
    return block + _checksum(block), data_at + size + _CHECKSUM_BYTES


# Numbers of up to 32 bits (ITF8) or 64 bits (LTF8): leading ones of the first byte count further
# bytes, at most 4 or 8. With 4 further bytes, the last has 4 bits only.

_UP_TO_32_BITS, _UP_TO_64_BITS = 4, 8


def _number(data: bytes, at: int, most: int = _UP_TO_32_BITS) -> tuple[int, int]:
    """Return the number at an offset, and the offset after it."""
    first = data[at]
    more = min(8 - (first ^ 0xFF).bit_length(), most)
    value = int.from_bytes(data[at + 1 : at + 1 + more], "big")
    value |= (first & 0x7F >> more) << 8 * more
    if most == more == _UP_TO_32_BITS:
        value = (first & 0xF) << 28 | (value & 0xFFFFFFFF) >> 8 << 4 | data[at + 4] & 0xF
    return value, at + 1 + more


def _bytes_of_number(value: int, most: int = _UP_TO_32_BITS) -> bytes:
    more = next((more for more in range(most) if value < 1 << 7 * (more + 1)), most)
    if most == more == _UP_TO_32_BITS:
        value = value >> 4 << 8 | value & 0xF
        return bytes([0xF0 | value >> 32]) + (value & 0xFFFFFFFF).to_bytes(4, "big")
    return ((0xFF00 >> more & 0xFF) << 8 * more | value).to_bytes(more + 1, "big")


def _after_numbers(data: bytes, at: int, count: int) -> int:
    for _ in range(count):
        _, at = _number(data, at)
    return at


_CHECKSUM_BYTES = 4


def _checksum(data: bytes) -> bytes:
    return isal_zlib.crc32(data).to_bytes(_CHECKSUM_BYTES, "little")
