"""Statistics of mapped reads as a data frame."""

import json
import math
from dataclasses import asdict

import pytest

import bwarp
from bwarp.allmap.find import Certificate
from bwarp.cli.timeline_file import timeline_to
from bwarp.evaluation.agreement import TruthCounts
from bwarp.mapping.insert_size import InsertSize, insert_size_text
from bwarp.records.statistics import empty_statistics, merged_statistics, statistics_text
from bwarp.runtime.timeline import span

COUNTS = empty_statistics() | {
    "reads": 10, "mapped": 8, "aligned_bases": 900, "inserted_bases": 100, "edits": 5,
    "reference_bases": 450, "insert_size": {"mean": 300.5, "standard_deviation": 20.0},
}  # fmt: skip


def test_units_are_rows(tmp_path):
    path = tmp_path / "liver.stats.json"
    other = COUNTS | {"reads": 20, "insert_size": None, "duplicates": 3}
    path.write_text(statistics_text(merged_statistics({"L1": COUNTS, "007": other}, None)))
    frame = bwarp.read_table(path)
    assert frame["unit"].tolist() == ["L1", "007"]
    assert frame["reads"].tolist() == [10, 20]
    assert frame["error_rate"].tolist() == [0.005, 0.005]
    assert frame["mean_depth"].tolist() == [2.0, 2.0]
    assert frame["insert_size_mean"][0] == 300.5
    assert math.isnan(frame["insert_size_mean"][1])
    assert math.isnan(frame["duplicates"][0])
    assert frame["duplicates"][1] == 3


def test_one_run(tmp_path):
    path = tmp_path / "a.b.stats.json"
    path.write_text(json.dumps(COUNTS))
    frame = bwarp.read_table(path)
    assert frame["unit"].tolist() == ["a.b"]
    assert set(COUNTS) - set(frame) == {
        "insert_size", "mapping_qualities", "insert_sizes", "stages", "depths"
    }  # fmt: skip


def test_statistics_of_allmap(tmp_path):
    certificate = Certificate(reads=10, aligned=8, without=2, loci=9)
    (tmp_path / "a.stats.json").write_text(json.dumps(asdict(certificate)))
    frame = bwarp.read_table(tmp_path / "a.stats.json")
    assert len(frame) == 1
    assert dict(frame.iloc[0]) | {"reads_by_loci": []} == asdict(certificate)


def test_counts_of_correct_reads(tmp_path):
    counts = TruthCounts((1, 2), (3, 4), (5, 6), 7, 8)
    (tmp_path / "truth.json").write_text(json.dumps(asdict(counts)))
    frame = bwarp.read_table(tmp_path / "truth.json")
    assert list(frame) == ["mapping_quality", *asdict(counts)]
    assert frame.values.tolist() == [[0, 1, 3, 5, 7, 8], [1, 2, 4, 6, 7, 8]]


def test_an_insert_size(tmp_path):
    (tmp_path / "size.json").write_text(insert_size_text(InsertSize(300.5, 20.0, 200, 400, 1)))
    frame = bwarp.read_table(tmp_path / "size.json")
    assert frame.iloc[0].tolist() == [300.5, 20.0, 200, 400, "RF"]


def test_a_timeline(tmp_path):
    with timeline_to(str(tmp_path / "t.json")), span("find seeds"):
        pass
    frame = bwarp.read_table(tmp_path / "t.json")
    assert frame[["step", "thread"]].values.tolist() == [["find seeds", "main"]]
    assert 0 <= frame.start[0] <= frame.end[0]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"reads": 3}', '{"units": 3}', "null"])
def test_not_statistics(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(bwarp.InputError, match=r"a\.json: not statistics of bwarp: read other"):
        bwarp.read_table(tmp_path / "a.json")
