"""The workflow builds an index in chunks once, and searches it with the same result."""

import pytest

SECTIONS = {
    "seeds": ("k: 14, step: 3, mismatches: 1, max_hits: 20", ("tsv", "over.tsv")),
    "mems": ("min_length: 12, strands: both", ("mums",)),
}


@pytest.fixture(scope="module")
def copy(make_copy):
    copy = make_copy(forks=True)
    genome = "".join((copy / "small.fa").read_text().splitlines()[1:])
    records = (f">q{start}\n{genome[start : start + 60]}\n" for start in range(0, 9000, 311))
    (copy / "queries.fa").write_text("".join(records))
    return copy


def settings(copy, *more):
    """Write a configuration with these keys in both sections."""
    sections = "".join(
        f"{target}: {{{', '.join(('queries: queries.fa', keys, *more))}}}\n"
        for target, (keys, _) in SECTIONS.items()
    )
    (copy / "mine.yaml").write_text(f"reference: small.fa\nbackend: cpu\n{sections}")
    return (*SECTIONS, "--configfile", "mine.yaml")


def test_the_bytes_do_not_depend_on_chunks(copy):
    copy.snakemake(*settings(copy))
    results = [
        copy / f"results/{target}/queries.{ending}"
        for target, (_, endings) in SECTIONS.items()
        for ending in endings
    ]
    expected = [path.read_bytes() for path in results]
    assert all(text.count(b"\n") > 1 for text in expected[:1] + expected[2:])
    in_chunks = settings(copy, "chunk_bases: 3000")
    planned = copy.planned(*in_chunks)
    assert planned.count("index_in_chunks") == 1
    assert "index_reference" not in planned
    copy.snakemake(*in_chunks)
    assert [path.read_bytes() for path in results] == expected
    assert "chunks 7" in (copy / "results/index/small.chunks-3000.txt").read_text()
    assert (copy / "results/index/small.chunks-3000/chunk-7/reverse_blocks.npy").exists()
    assert copy.planned(*in_chunks) == []
