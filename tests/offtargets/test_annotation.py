"""Features of BED and GFF that overlap an interval."""

import gzip

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.offtargets.site_rows import overlapping, read_features
from tests.helpers.oracles.index_oracle import reference_of

BED = (
    "track name=x\n#c\ncontig0\t0\t10\ta;b\t0\t+\n"
    "contig1\t5\t8\tb\ncontig1\t2\t90\tc\nother\t1\t2\tz\n"
)
GFF = (
    "##gff-version 3\n"
    "contig0\tx\tgene\t1\t10\t.\t+\t.\tID=g1;Name=a,b\n"
    'contig1\tx\texon\t6\t8\t.\t-\t.\tgene_id "g"; gene_name "b";\n'
    "contig1\tx\tc\t3\t90\t.\t-\t.\t.\n"
    "##FASTA\n>x\nACGT\n"
)


@pytest.fixture
def reference():
    return reference_of([b"ACGTA" * 4, b"ACGTA" * 6])


@pytest.mark.parametrize("text", [BED, GFF])
def test_bed_and_gff_are_read_alike(text, tmp_path, reference):
    (tmp_path / "a").write_text(text)
    (tmp_path / "a.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("a", "a.gz"):
        features = read_features(tmp_path / name, reference)
        names = [features.names.name(i) for i in range(3)]
        assert names == ["a,b", "c", "b"]
        # A feature that ends after its contig is truncated.
        assert features.starts.tolist() == [0, 22, 25]
        assert features.stops.tolist() == [10, 50, 28]
        assert features.reach.tolist() == [10, 50, 50]


def test_overlaps_by_comparing_all(tmp_path, reference):
    rng = np.random.default_rng(3)
    starts = rng.integers(0, 18, 40)
    stops = np.minimum(starts + rng.integers(0, 9, 40), 20)
    (tmp_path / "a.bed").write_text(
        "".join(
            f"contig0\t{a}\t{b}\tf{i}\n" for i, (a, b) in enumerate(zip(starts, stops, strict=True))
        )
    )
    features = read_features(tmp_path / "a.bed", reference)
    for first in range(20):
        for last in range(first + 1, 21):
            begin, end = overlapping(features.starts, features.stops, features.reach, first, last)
            found = {features.names.name(i) for i in range(begin, end) if features.stops[i] > first}
            assert found == {f"f{i}" for i in range(40) if starts[i] < last and stops[i] > first}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("contig0\t1\n", "a, line 1: neither BED nor GFF: columns 2 and 3 must be a start and "
         "an end"),
        ("contig0\tx\ty\t5\t2\t.\t+\t.\tID=a\n", "a, line 1: neither BED nor GFF: columns "
         "4 and 5"),
        ("chr1\t1\t5\n", "a: no feature lies on a contig of the index: the first feature is on "
         "chr1, but the first contig is contig0"),
    ],
)  # fmt: skip
def test_refusals(text, message, tmp_path, monkeypatch, reference):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text(text)
    with pytest.raises(InputError) as refused:
        read_features("a", reference)
    assert message in str(refused.value)
