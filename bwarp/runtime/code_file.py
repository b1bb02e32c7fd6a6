"""One file of compiled functions, each under a key. Entries are appended and never changed.

    key              32 bytes
    length           8 bytes, little-endian
    checksum         4 bytes: CRC-32 of the value
    value            so many bytes

Several programs may read and append at a time: who appends holds a lock. An entry that was cut off
by a full disk or a killed program is the last one; readers pass over it, and the next to append
removes it.
"""

import contextlib
import fcntl
import os
import struct
import threading
import zlib
from pathlib import Path

__all__ = ["CodeFile"]

_HEAD = struct.Struct("<32sQI")

#: A file larger than this is replaced by an empty one: all programs together need a tenth of it, so
#: most of it was made of sources that have changed since.
MOST_BYTES = 256 << 20


class CodeFile:
    """The file at `path`, which need not exist, nor be one that may be written."""

    def __init__(self, path: Path):
        self.path = path
        self._lock = threading.Lock()
        self._file: int | None = None
        self._forget()

    def get(self, key: bytes) -> bytes | None:
        """The value under a key of 32 bytes, or None where there is none, or it is damaged."""
        with self._lock:
            if key not in self._entries:
                self._find_entries()
            if key not in self._entries:
                return None
            start, length, checksum = self._entries[key]
            value = os.pread(self._file, length, start)
        return value if zlib.crc32(value) == checksum else None

    def put(self, key: bytes, value: bytes) -> None:
        """Keep a value; where that cannot be written, nothing is kept."""
        # Refused, for example, by a folder that may not be written, or a full disk.
        with self._lock, contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                self._append(file, key, value)
            finally:
                os.close(file)

    def _append(self, file: int, key: bytes, value: bytes) -> None:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        self._find_entries()
        size = os.fstat(file).st_size
        if size > MOST_BYTES:
            # Those who have it open go on reading the former one.
            self.path.unlink(missing_ok=True)
        elif key not in self._entries:
            if size > self._end:
                os.ftruncate(file, self._end)
            entry = memoryview(_HEAD.pack(key, len(value), zlib.crc32(value)) + value)
            while entry:
                entry = entry[os.write(file, entry) :]

    def _forget(self) -> None:
        self._entries: dict[bytes, tuple[int, int, int]] = {}
        self._end = 0
        self._inode = None

    def _find_entries(self) -> None:
        """Read the heads of what was appended since the last look."""
        try:
            status = os.stat(self.path)
        except OSError:
            return
        if status.st_ino != self._inode or status.st_size < self._end:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            self._forget()
            try:
                self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return
            status = os.fstat(self._file)
            self._inode = status.st_ino
        while self._end + _HEAD.size <= status.st_size:
            head = os.pread(self._file, _HEAD.size, self._end)
            key, length, checksum = _HEAD.unpack(head)
            start = self._end + _HEAD.size
            if start + length > status.st_size:
                return
            self._entries[key] = start, length, checksum
            self._end = start + length
