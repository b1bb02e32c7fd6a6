"""The files of --qc are those of samtools and mosdepth, on random and hostile files."""

import shutil
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from bwarp.bam.sorted_file import merge_files, sorted_file
from bwarp.checks.check_files import CheckFiles
from bwarp.io.compressed_files import read_blocks
from tests.helpers.cases.random_bam import CONTIGS, write_random_bam
from tests.helpers.oracles.samtools_texts import check_texts_of_samtools
from tests.helpers.oracles.slow_depths import slow_depths, slow_distribution, slow_summary


def check(path: Path, out: Path, threads: int = 1, regions: Path | None = None) -> dict[str, str]:
    """Merge a file alone, and return the texts of its checks by their endings."""
    out.mkdir()
    qc = CheckFiles(str(out / "qc"), str(out / "s.bam"), regions and str(regions))
    merge_files(
        [path], out / "s.bam", threads, str(out / "s.bam"), partial(sorted_file, check_files=qc)
    )
    return {file.name.removeprefix("s."): b"".join(read_blocks(file)).decode() for file in qc.paths}


@pytest.fixture(scope="module", params=range(6))
def file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "r.bam"
    seed = request.param
    # The first has one read, the last deep coverage of long reads.
    templates, longest = [(1, 30), (30, 90), (400, 120), (400, 3), (1500, 60), (3000, 290)][seed]
    write_random_bam(path, seed, templates, longest)
    return path


@pytest.fixture(scope="module")
def regions(tmp_path_factory):
    path = tmp_path_factory.mktemp("regions") / "r.bed"
    lines = [
        ("two", 0, 900, "whole"), ("one", 100, 150, ""), ("one", 120, 3000, "overlap"),
        ("one", 100, 101, "base"), ("empty", 7, 9, ""), ("one", 150, 160, "next"),
    ]  # fmt: skip
    path.write_text("".join("\t".join(map(str, line)).rstrip() + "\n" for line in lines))
    return path


def test_texts_of_samtools(file, tmp_path):
    check_texts_of_samtools(file, check(file, tmp_path / "out"))


def test_long_reads(tmp_path):
    write_random_bam(tmp_path / "r.bam", 2, 500, 300)
    texts = check(tmp_path / "r.bam", tmp_path / "out")
    assert "SN\tmaximum length:\t3" in texts["stats"]
    check_texts_of_samtools(tmp_path / "r.bam", texts, has_long_reads=True)


def test_texts_of_mosdepth(file, regions, tmp_path):
    depths = slow_depths(file)
    of_regions = {name: [np.empty(0, int)] for name in CONTIGS}
    lines = []
    order = {name: i for i, name in enumerate(CONTIGS)}
    cells = [line.split("\t") for line in regions.read_text().splitlines()]
    for name, start, stop, *title in sorted(cells, key=lambda c: (order[c[0]], int(c[1]))):
        own = depths.get(name, np.zeros(CONTIGS[name], int))[int(start) : int(stop)]
        of_regions[name].append(own)
        lines.append("\t".join([name, start, stop, *title, f"{own.sum() / own.size:.2f}\n"]))
    of_regions = {name: np.concatenate(parts) for name, parts in of_regions.items()}
    texts = check(file, tmp_path / "out")
    assert list(texts) == [
        "flagstat", "idxstats", "stats", "mosdepth.global.dist.txt", "mosdepth.summary.txt"
    ]  # fmt: skip
    assert texts["mosdepth.global.dist.txt"] == slow_distribution(depths)
    assert texts["mosdepth.summary.txt"] == slow_summary(depths, None)
    texts = check(file, tmp_path / "regions", 3, regions)
    assert texts["mosdepth.global.dist.txt"] == slow_distribution(depths)
    assert texts["mosdepth.summary.txt"] == slow_summary(depths, of_regions)
    with_records = {name: of_regions[name] for name in depths}
    assert texts["mosdepth.region.dist.txt"] == slow_distribution(with_records)
    assert texts["regions.bed.gz"] == "".join(lines)


@pytest.mark.skipif(shutil.which("mosdepth") is None, reason="mosdepth is not installed")
def test_texts_of_installed_mosdepth(file, regions, tmp_path):
    texts = check(file, tmp_path / "out", 1, regions)
    subprocess.run(["mosdepth", "--by", regions, tmp_path / "s", file], check=True)
    for ending in ("mosdepth.global.dist.txt", "mosdepth.summary.txt", "mosdepth.region.dist.txt"):
        assert texts[ending] == (tmp_path / f"s.{ending}").read_text()
    # A mean of exactly half a hundredth may be rounded in the other direction.
    expected = b"".join(read_blocks(tmp_path / "s.regions.bed.gz")).decode().split()
    assert len(texts["regions.bed.gz"].split()) == len(expected)
