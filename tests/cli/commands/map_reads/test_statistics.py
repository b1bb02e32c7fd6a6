"""bwarp map --stats: counts during mapping agree with other programs' counts in the file."""

import json

import numpy as np
import pysam
import pytest

from bwarp.records.statistics import depth_step
from tests.helpers.programs.mapped_reads import contigs_of, records


@pytest.fixture(scope="module", params=["pairs", "single", "end-to-end", "all"])
def mapped(request, run_program, folder, tmp_path_factory):
    """Return a sorted BAM and its statistics, for reads with splits and indels."""
    out = tmp_path_factory.mktemp(request.param)
    letters = contigs_of(folder / "genome.fa")["chr1"]
    split = [
        f"@split{i}\n{letters[i : i + 80]}{letters[i + 3000 : i + 3040]}AC"
        f"{letters[i + 3040 : i + 3080]}\n+\n{'I' * 162}\n"
        for i in range(0, 20_000, 500)
    ]
    (out / "split.fq").write_text("".join(split))
    options = {
        "pairs": ["-1", folder / "1.fq", "-2", folder / "2.fq", "-U", out / "split.fq"],
        "single": ["-1", folder / "single.fq.gz", out / "split.fq", "--mark-duplicates"],
        "end-to-end": ["-1", folder / "single.fq.gz", "--mode", "end-to-end"],
        "all": ["-1", out / "split.fq", "--all", "--eqx"],
    }[request.param]
    done = run_program(
        "map_reads.py", "--index", folder / "index", *options, "-o", out / "out.bam", "--sort",
        "--stats", out / "stats.json", "--backend", "cpu", "-t", 3,
    )  # fmt: skip
    assert done.rc == 0, done.stderr
    return out / "out.bam", json.loads((out / "stats.json").read_text())


def test_counts_are_those_of_the_records(mapped):
    path, statistics = mapped
    kept = [r for r in records(path) if not r.is_unmapped and not r.is_secondary]
    sums = np.array([r.get_cigar_stats()[0] for r in kept]).sum(axis=0)
    assert statistics["aligned_bases"] == sums[0] + sums[7] + sums[8]
    assert statistics["inserted_bases"] == sums[1]
    assert statistics["edits"] == sum(r.get_tag("NM") for r in kept)
    supplementary = [r for r in kept if r.is_supplementary]
    assert statistics["supplementary"] == len(supplementary)
    names = {(r.query_name, r.is_read2) for r in supplementary}
    assert statistics["split_reads"] == len(names)
    with pysam.AlignmentFile(path) as file:
        assert statistics["reference_bases"] == sum(file.lengths)
        depths = [
            np.sum(file.count_coverage(
                name, quality_threshold=0, read_callback=lambda r: not r.flag & 0x104
            ), axis=0)
            for name in file.references
        ]  # fmt: skip
    n_ambiguous = sum(base not in "ACGT" for r in kept for base in r.query_sequence)
    step = depth_step(statistics["reference_bases"])
    expected = np.concatenate(depths)[::step]
    found = np.array(statistics["depths"])
    assert step > 1
    # pysam skips bases other than A, C, G and T.
    assert found.shape == expected.shape
    assert 0 <= np.sum(found - expected) <= n_ambiguous
    if not n_ambiguous:
        assert found.tolist() == expected.tolist()


def test_samtools_stats_says_the_same(mapped):
    path, counts = mapped
    rows = [line.split("\t") for line in pysam.stats(str(path)).splitlines()]
    theirs = {row[1].rstrip(":"): row[2] for row in rows if row[0] == "SN"}
    bases = counts["aligned_bases"] + counts["inserted_bases"]
    ours = {
        "raw total sequences": counts["reads"],
        "reads mapped": counts["mapped"],
        "reads mapped and paired": counts["both_mapped"],
        "reads unmapped": counts["unmapped"],
        "reads properly paired": counts["properly_paired"],
        "reads paired": counts["paired"],
        "reads MQ0": counts["mapping_qualities"][0],
        "reads duplicated": counts["duplicates"] or 0,
        "supplementary alignments": counts["supplementary"],
        "total length": counts["bases"],
        "bases mapped (cigar)": bases,
        "mismatches": counts["edits"],
    }
    assert {name: str(count) for name, count in ours.items()} == {
        name: theirs[name] for name in ours
    }
    assert float(theirs["error rate"]) == pytest.approx(counts["edits"] / max(bases, 1), rel=1e-6)
