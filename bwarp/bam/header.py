"""Headers of BAM files: reading, writing and merging them; valid names; the @PG record."""

import itertools
import re
import shlex
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from bwarp import __version__
from bwarp.errors import InputError

#: The kinds of header lines in their order; others follow.
_KINDS = (b"@HD", b"@SQ", b"@RG", b"@PG")


@dataclass(frozen=True)
class BamHeader:
    """The header of a BAM file.

    Attributes
    ----------
    text : bytes
        Lines of SAM.
    names : tuple of bytes
    lengths : tuple of int
    """

    text: bytes
    names: tuple[bytes, ...]
    lengths: tuple[int, ...]

    @property
    def contig_starts(self) -> np.ndarray:
        """Starts of the concatenated contigs, and the end of the last."""
        return np.concatenate([[0], np.cumsum(np.array(self.lengths, np.int64))])


def contig_name(name: bytes) -> str:
    """Return the name of a contig as text; bytes that are not UTF-8 are kept as surrogates."""
    return name.decode(errors="surrogateescape")


def header_bytes(header: BamHeader) -> bytes:
    """Return the bytes of the header: its text, then the contigs in binary."""
    parts = [struct.pack("<4si", b"BAM\1", len(header.text)), header.text]
    parts.append(struct.pack("<i", len(header.names)))
    for name, length in zip(header.names, header.lengths, strict=True):
        parts.append(struct.pack("<i", len(name) + 1) + name + struct.pack("<Bi", 0, length))
    return b"".join(parts)


def split_header(path, blocks: Iterator[bytes]) -> tuple[BamHeader, Iterator[bytes]]:
    """Split a stream of bytes into its header and the stream of records after it."""
    stream = _Stream(path, blocks)
    if stream.take(4) != b"BAM\1":
        raise InputError(f"{path}: not a BAM file: give one that bwarp map --sort wrote")
    text = stream.take(stream.take_number())
    names, lengths = [], []
    for _ in range(stream.take_number()):
        names.append(stream.take(stream.take_number())[:-1])
        lengths.append(stream.take_number())
    return BamHeader(text, tuple(names), tuple(lengths)), stream.rest()


def merged_header(paths: list, headers: list[BamHeader]) -> BamHeader:
    """Return the header of merged sorted files: their contigs, and each distinct header line once.

    Raises
    ------
    InputError
        If the references differ, a file is not sorted, or a read group is defined twice
        differently.
    """
    first, groups = headers[0], {}
    for path, header in zip(paths, headers, strict=True):
        if (header.names, header.lengths) != (first.names, first.lengths):
            raise InputError(
                f"{path}: its contigs differ from those of {paths[0]}: map all units to the same "
                "reference"
            )
        if b"\tSO:coordinate" not in header.text.partition(b"\n")[0]:
            raise InputError(f"{path}: not sorted: write it with bwarp map --sort")
        for line in header.text.splitlines():
            if line.startswith(b"@RG\t"):
                name = next((part for part in line.split(b"\t") if part.startswith(b"ID:")), b"")
                if groups.setdefault(name, line) != line:
                    raise InputError(
                        f"{path}: read group {name[3:].decode()!r} has a different header line in "
                        "an earlier unit: give each unit its own read group"
                    )
    # Order the lines as in a single file: contigs, groups, programs, the rest.
    rank = {kind: number for number, kind in enumerate(_KINDS)}
    lines = dict.fromkeys(_with_own_programs([header.text.splitlines() for header in headers]))
    ordered = sorted(lines, key=lambda line: rank.get(line[:3], len(_KINDS)))
    return BamHeader(b"".join(line + b"\n" for line in ordered), first.names, first.lengths)


def _with_own_programs(headers: list[list[bytes]]) -> Iterator[bytes]:
    """Yield the lines of all headers; number different @PG records with the same ID.

    Two records are equal if their lines and those of the programs before them are equal.
    """
    programs = [
        {_value(line, b"ID"): line for line in lines if _is_program(line)} for lines in headers
    ]
    taken = set(itertools.chain(*programs))
    names: dict[tuple[bytes, ...], bytes] = {}
    for lines, by_name in zip(headers, programs, strict=True):
        new = {}
        for name, line in by_name.items():
            chain = _chain(line, by_name)
            if chain not in names:
                names[chain] = _free_name(name, taken) if name in names.values() else name
            new[name] = names[chain]
        for line in lines:
            for key in (b"ID", b"PP") if _is_program(line) else ():
                name = _value(line, key)
                line = line.replace(_field(key, name), _field(key, new.get(name, name)), 1)
            yield line


def _chain(line: bytes, by_name: Mapping[bytes, bytes]) -> tuple[bytes, ...]:
    """Return a @PG record and those of the programs that ran before it, the last one first."""
    chain = {line: None}
    while (before := by_name.get(_value(line, b"PP"))) and before not in chain:
        chain[before] = None
        line = before
    return tuple(chain)


def _free_name(name: bytes, taken: set[bytes]) -> bytes:
    """Return the ID with a number that makes it new, and add it to `taken`."""
    numbered = (b"%b.%d" % (name, number) for number in itertools.count(1))
    free = next(one for one in numbered if one not in taken)
    taken.add(free)
    return free


def _is_program(line: bytes) -> bool:
    return line.startswith(b"@PG\t")


def _value(line: bytes, key: bytes) -> bytes:
    """Return the value of a field of a header line, empty if it has none."""
    found = re.search(rb"\t%b:([^\t]*)" % key, line)
    return found[1] if found else b""


def _field(key: bytes, value: bytes) -> bytes:
    return b"\t%b:%b" % (key, value)


def with_program(header: BamHeader, record: str) -> BamHeader:
    """Add a @PG record after those of a merged header; its PP is the last of them.

    Its ID gets a number if the header has this ID.
    """
    lines = header.text.splitlines()
    earlier = [_value(line, b"ID") for line in lines if _is_program(line)]
    line = record.encode()
    name = _value(line, b"ID")
    own = _field(b"ID", _free_name(name, set(earlier)) if name in earlier else name)
    # PP comes before CL, which pysam reads up to the end of the line.
    linked = own + (_field(b"PP", earlier[-1]) if earlier else b"")
    lines.insert(
        sum(line.startswith(_KINDS) for line in lines), line.replace(_field(b"ID", name), linked, 1)
    )
    return replace(header, text=b"".join(line + b"\n" for line in lines))


class _Stream:
    """Reads bytes from the start of a stream of blocks."""

    def __init__(self, path, blocks: Iterator[bytes]):
        self._path = path
        self._blocks = blocks
        self._data = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        while len(self._data) - self._at < count:
            block = next(self._blocks, None)
            if block is None:
                raise InputError(
                    f"{self._path}: the file is truncated in its header: write it again"
                )
            self._data, self._at = self._data[self._at :] + block, 0
        self._at += count
        return self._data[self._at - count : self._at]

    def take_number(self) -> int:
        return struct.unpack("<i", self.take(4))[0]

    def rest(self) -> Iterator[bytes]:
        yield self._data[self._at :]
        yield from self._blocks


# --------------------------------------------------------------------------------------------------
# Names that SAM allows; other programs reject or misread other names.
#
# A read name is printable ASCII without blanks, has at most 254 characters in BAM, and does not
# start with @. (The SAM specification forbids @ anywhere, but all programs read such names.)


#: A BAM record stores the length of its name, including a final zero, in one byte.
LONGEST_READ_NAME = 254

_CONTIG = re.compile(r"[0-9A-Za-z!#$%&+./:;?@^_|~-][0-9A-Za-z!#$%&*+./:;=?@^_|~-]*")


def is_contig_name(name: str) -> bool:
    return _CONTIG.fullmatch(name) is not None


# --------------------------------------------------------------------------------------------------
# The @PG record of SAM and BAM: the program and command line that wrote the file.


def files_of_reads(paired: bool) -> dict[str, str]:
    """Return placeholders for the index, the reads and the output."""
    reads = {"-1": "R1.fq", "-2": "R2.fq"} if paired else {"-1": "READS.fq"}
    return {"--index": "INDEX", **reads, "-o": "OUT.bam"}


def program_record(command: str, files: Mapping[str, str], options: Mapping[str, object]) -> str:
    """Return the record, with a command line (CL) of all options that affect the output.

    Files are placeholders, and threads, the engine and the read group (which @RG holds) are not
    among `options`, so the same work gives the same bytes on any machine.

    Parameters
    ----------
    command : str
        A subcommand of bwarp, and placeholders of files that follow it.
    files : mapping
        Options and their placeholders, as in --help.
    options : mapping
        Long option names and their values. True stands for a flag; False and None are left out.
    """
    words = ["bwarp", *command.split(), *(word for option in files.items() for word in option)]
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None and value is not False:
            words += [f"--{name}", str(value)]
    return f"@PG\tID:bwarp\tPN:bwarp\tVN:{__version__}\tCL:{shlex.join(words)}"
