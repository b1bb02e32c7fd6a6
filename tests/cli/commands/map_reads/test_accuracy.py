"""bwarp map: positions of mapped reads."""

import json
from collections import Counter

import pytest

from tests.helpers.programs.mapped_reads import outcome, records


def test_pairs_map_to_their_origins(folder, pairs_sam):
    output, said = pairs_sam
    assert said == "3,000 reads, 2,942 mapped, 2,942 properly paired\n"
    assert outcome(output) == {
        ("random", False): 58,
        ("correct", False): 208,
        ("correct", True): 2528,
        ("incorrect", False): 206,
    }
    statistics = json.loads((folder / "pairs.json").read_text())
    sizes = Counter(
        abs(r.template_length) // 10 for r in records(output) if r.is_proper_pair and r.is_read1
    )
    assert statistics.pop("insert_sizes") == [sizes[size] for size in range(201)]
    qualities = Counter(r.mapping_quality for r in records(output) if not r.is_unmapped)
    assert statistics.pop("mapping_qualities") == [qualities[q] for q in range(61)]
    stages = statistics.pop("stages")
    assert stages["reads"] == 3000 <= stages["hits scored"]
    # Reads of 150 bases have five seeds in the first round.
    assert stages["seeds searched"] >= 5 * 3000
    assert stages["hits located"] > 5 * 2942
    assert 2942 <= stages["candidates"] < stages["hits located"]
    assert 0 < stages["hits with gaps"] < stages["hits scored"]
    assert stages["reads mapped"] == 2942
    assert stages["reads of quality 30"] == sum(qualities[q] for q in range(30, 61))
    bases = Counter()
    for record in records(output):
        for operation, length in record.cigartuples or ():
            bases[operation] += length
    assert statistics.pop("aligned_bases") == bases[0]
    assert statistics.pop("inserted_bases") == bases[1]
    edits = sum(r.get_tag("NM") for r in records(output) if not r.is_unmapped)
    assert statistics.pop("edits") == edits
    # The names at every 14th of 140,000 positions.
    assert 14 * sum(statistics.pop("depths")) == pytest.approx(bases[0], rel=0.01)
    assert statistics == {
        "reads": 3000,
        "bases": 450000,
        "mapped": 2942,
        "unmapped": 58,
        "paired": 3000,
        "properly_paired": 2942,
        "both_mapped": 2942,
        "split_reads": 0,
        "supplementary": 0,
        "reference_bases": 140_000,
        "duplicates": None,
        "insert_size": {
            "mean": 399.323,
            "standard_deviation": 59.22,
            "lowest": 130,
            "highest": 669,
            "orientation": "FR",
        },
    }


def test_single_reads_map_to_their_origins(map_reads, folder, tmp_path):
    output = tmp_path / "single.sam"
    done = map_reads("-1", folder / "single.fq.gz", "-o", output)
    assert (done.rc, done.stdout, done.stderr) == (
        0,
        "",
        "1,000 reads, 979 mapped\n",
    )
    assert outcome(output) == {
        ("random", False): 21,
        ("correct", False): 88,
        ("correct", True): 814,
        ("incorrect", False): 77,
    }
    assert {record.flag & ~0x14 for record in records(output)} == {0}
