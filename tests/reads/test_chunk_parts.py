"""The parts of a chunk together contain its templates."""

import numpy as np
import pytest

from bwarp.reads.read_chunks import chunk_parts, interleaved_chunks, single_chunks
from bwarp.reads.stored_reads import ReadChunk

NAMES = ["a", "a", "b", "c", "c", "d", "d", "e"]


@pytest.fixture
def reads(tmp_path):
    path = tmp_path / "reads.fq"
    path.write_text(
        "".join(
            f"@{name} XX:i:{i}\n{'ACGT' * i}\n+\n{'IH#5' * i}\n" for i, name in enumerate(NAMES)
        )
    )
    return path


def texts_of(chunk: ReadChunk) -> list[tuple]:
    """Return each template's number and name, and its reads with their comments."""
    found = []
    for template in range(chunk.n_templates):
        is_orphan = chunk.orphans is not None and chunk.orphans[template]
        own = [chunk.first_template + template, chunk.name(template), bool(is_orphan)]
        for read in range(template * chunk.ends, (template + 1) * chunk.ends):
            begin, end = chunk.offsets[read : read + 2]
            comment = slice(*chunk.comments[read])
            own += [
                chunk.codes[begin:end].tolist(), chunk.qualities[begin:end].tolist(),
                chunk.text[comment].tobytes(),
            ]  # fmt: skip
        found.append(tuple(own))
    return found


@pytest.mark.parametrize("make", [single_chunks, interleaved_chunks])
@pytest.mark.parametrize("most_reads", [1, 2, 3, 5, 100])
def test_parts_are_the_chunk(reads, make, most_reads):
    chunk = next(make(reads))
    parts = list(chunk_parts(chunk, most_reads))
    assert [one for part in parts for one in texts_of(part)] == texts_of(chunk)
    assert max(part.n_reads for part in parts) <= max(most_reads, chunk.ends)
    assert all(part.orphans is None or part.n_orphans for part in parts)
    assert all(
        part.offsets[0] == 0 and np.diff(part.offsets).sum() == part.codes.size for part in parts
    )
