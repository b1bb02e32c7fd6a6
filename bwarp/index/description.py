"""Parse and check index.json, the description of an index or of an index in chunks.

The checksums detect damage, but do not prove who wrote a file. No value read here is used for an
array, a loop or a name in an output before its type and range are checked.
"""

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from bwarp.errors import InputError
from bwarp.index.fm_index import block_words
from bwarp.io.chunk_files import PIECE_BYTES, text_sum
from bwarp.options.finding import LONGEST_KMER
from bwarp.options.mapping import INDEX
from bwarp.reference import LONGEST_TEXT

FORMAT = "bwarp index"
#: With both BWTs, and without the reverse.
FORMAT_VERSIONS = (1, 2)

#: The format of an index in chunks (`bwarp.index.chunks`), and its versions.
CHUNKS_FORMAT = "bwarp index in chunks"
CHUNKS_VERSIONS = (1,)

#: Bases by which chunks overlap: every stretch of this many bases and one lies within a chunk.
OVERLAP = LONGEST_KMER - 1

#: As in FASTA: no blanks, and encodable as UTF-8.
_NAME = re.compile(r"[^ \t\n\r\v\f\ud800-\udfff]+")
_MD5 = re.compile(r"[0-9a-f]{32}")
_CRC32 = re.compile(r"[0-9a-f]{8}")
_LONGEST_SHOWN = 60


def canonical(description: dict) -> str:
    """Return the text of a description over which its checksum is computed."""
    return json.dumps(description, sort_keys=True, separators=(",", ":"))


def parsed_description(path: Path, text: bytes) -> dict:
    """Return the checked contents of index.json.

    Raises
    ------
    InputError
        If it is damaged, from another program or version, or describes an impossible index.
    """
    description = _parsed(path, text)
    if description["format"] == CHUNKS_FORMAT:
        raise refused_chunks(path.parent)
    return _checked(path, description, FORMAT_VERSIONS, _impossible_key)


def parsed_chunks(path: Path, text: bytes) -> dict:
    """Return the checked contents of index.json of an index in chunks; errors as above."""
    return _checked(path, _parsed(path, text), CHUNKS_VERSIONS, _impossible_key_of_chunks)


def refused_chunks(folder: Path) -> InputError:
    """Return the error of a program or function that cannot use an index in chunks."""
    return InputError(
        f"{folder}: is an index in chunks, which only bwarp mems and bwarp seeds search: build one "
        "without --chunk-bases"
    )


def describes_chunks(text: bytes) -> bool:
    """Return whether an index.json, perhaps damaged, is that of an index in chunks."""
    return CHUNKS_FORMAT.encode() in text


def _parsed(path: Path, text: bytes) -> dict:
    """Return the contents of index.json of either format."""
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{path}: the file is damaged: build the index again") from None
    if not isinstance(description, dict) or description.get("format") not in (
        FORMAT,
        CHUNKS_FORMAT,
    ):
        raise InputError(
            f"{path}: not a bwarp index, or damaged: make one with bwarp index REF.fa -o "
            f"{path.parent}"
        )
    return description


def _checked(
    path: Path,
    description: dict,
    versions: tuple[int, ...],
    impossible_key: Callable[[dict], str | None],
) -> dict:
    """Return a description without its checksum, after checking that and every value."""
    version = description.get("version")
    if not _is_whole(version) or version not in versions:
        readable = " or ".join(map(str, versions))
        raise InputError(
            f"{path}: the index has format version {_shown(version)}, but this bwarp reads "
            f"version {readable}: build the index again"
        )
    recorded = description.pop("sum", None)
    if recorded != text_sum(canonical(description)):
        raise InputError(f"{path}: the file is damaged: build the index again")
    wrong = impossible_key(description)
    if wrong is not None:
        raise InputError(
            f"{path}: invalid {wrong} {_shown(description.get(wrong))}: build the index again"
        )
    return description


def array_types(description: dict) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
    """Return the type and shape of each array of an index, by the name of its file."""
    n_rows, n_separators = description["text_length"], description["first_rows"][0]
    occ_rate, prefix_length = description["occ_rate"], description["prefix_length"]
    numbers = np.dtype("<u4")
    blocks = (numbers, (n_rows // occ_rate + 1, block_words(occ_rate)))
    types = reference_types(description["contigs"], n_separators) | {
        "forward_blocks.npy": blocks,
        "forward_separator_rows.npy": (numbers, (n_separators,)),
        "prefix_table.npy": (numbers, (4**prefix_length if prefix_length else 0, 2)),
        "suffix_array.npy": (numbers, (-(-n_rows // description["sa_rate"]),)),
    }
    if description["version"] == 1:
        types["reverse_blocks.npy"] = blocks
        types["reverse_separator_rows.npy"] = (numbers, (n_separators,))
    return types


def reference_types(
    contigs: list[dict], n_segments: int
) -> dict[str, tuple[np.dtype, tuple[int, ...]]]:
    """Return the type and shape of the arrays of a reference, by the names of their files."""
    n_bases = sum(contig["length"] for contig in contigs)
    return {
        "genome.npy": (np.dtype("<u8"), (n_bases // 32 + 2,)),
        "segments.npy": (np.dtype("<i8"), (n_segments, 2)),
    }


def _shown(value: object) -> str:
    """Return a value as JSON, shortened to one line."""
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def _is_whole(value: object, least: int = 0, most: int = LONGEST_TEXT) -> bool:
    """Return whether a value is an integer in a range; true and false are not."""
    return type(value) is int and least <= value <= most


def _impossible_key(description: dict) -> str | None:
    """Return the first key whose value is impossible."""
    get = description.get
    for key in ("occ_rate", "sa_rate", "prefix_length"):
        if not (_is_whole(get(key)) and INDEX[key].allows(get(key))):
            return key
    if not _is_whole(get("text_length"), least=2):
        return "text_length"
    if not _are_first_rows(get("first_rows"), get("text_length")):
        return "first_rows"
    last_start = get("first_rows")[0] - 1
    if not _is_whole(get("forward_text_start"), most=last_start):
        return "forward_text_start"
    has_reverse = get("version") == 1
    if has_reverse != ("reverse_text_start" in description):
        return "reverse_text_start"
    if has_reverse and not _is_whole(get("reverse_text_start"), most=last_start):
        return "reverse_text_start"
    if not _are_contigs(get("contigs")):
        return "contigs"
    return None if has_sums_of(get("files"), array_types(description)) else "files"


def _impossible_key_of_chunks(description: dict) -> str | None:
    get = description.get
    if get("overlap") != OVERLAP or not _is_whole(get("overlap")):
        return "overlap"
    if not _is_whole(get("text_length"), least=2):
        return "text_length"
    if not _is_whole(get("segments"), least=1, most=get("text_length")):
        return "segments"
    if not _are_contigs(get("contigs")):
        return "contigs"
    n_bases = sum(contig["length"] for contig in get("contigs"))
    # Otherwise a base could be in more than two chunks.
    if not _is_whole(get("chunk_bases"), least=OVERLAP, most=INDEX["chunk_bases"].value.most):
        return "chunk_bases"
    if not _are_chunks(get("chunks"), n_bases):
        return "chunks"
    types = reference_types(get("contigs"), get("segments"))
    return None if has_sums_of(get("files"), types) else "files"


def _are_chunks(value: object, n_bases: int) -> bool:
    """Check that there are chunks, in order, each with the checksum of its index."""
    if not isinstance(value, list) or not value or not all(map(_is_chunk, value)):
        return False
    edges = [edge for chunk in value for edge in (chunk["start"], chunk["stop"])]
    in_order = all(chunk["start"] < chunk["stop"] for chunk in value)
    return in_order and edges == sorted(edges) and edges[-1] <= n_bases


def _is_chunk(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_whole(value.get("start"))
        and _is_whole(value.get("stop"))
        and _is_text(value.get("sum"), _CRC32)
    )


def _are_first_rows(value: object, text_length: int) -> bool:
    """Check that the separators, at least one, come first, and that the last number is that of all
    rows.
    """
    return (
        isinstance(value, list)
        and len(value) == 5
        and all(_is_whole(row) for row in value)
        and value == sorted(value)
        and value[0] >= 1
        and value[4] == text_length
    )


def _are_contigs(value: object) -> bool:
    if not isinstance(value, list) or not all(map(_is_contig, value)):
        return False
    names = {contig["name"] for contig in value}
    return len(names) == len(value) and _is_whole(
        sum(contig["length"] for contig in value), least=1
    )


def _is_contig(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_text(value.get("name"), _NAME)
        and _is_text(value.get("md5"), _MD5)
        and _is_whole(value.get("length"))
        and value.get("alt", True) is True
    )


def has_sums_of(value: object, names: Iterable[str]) -> bool:
    """Return whether the size and checksums of files with these names are given."""
    return isinstance(value, dict) and all(_has_sums(value.get(name)) for name in names)


def _has_sums(value: object) -> bool:
    """Return whether the size of a file and a checksum for each of its pieces are given."""
    return (
        isinstance(value, dict)
        and _is_whole(value.get("bytes"), most=1 << 62)
        and isinstance(value.get("crc32"), list)
        and len(value["crc32"]) == -(-value["bytes"] // PIECE_BYTES)
        and all(_is_text(piece, _CRC32) for piece in value["crc32"])
    )


def _is_text(value: object, pattern: re.Pattern) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
