"""Other programs for GPUs: what they print, and a run beside programs that only print."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from parts import gpu_peers  # noqa: E402

CUDASW4 = """\
Using db file: cudasw4/d
Processing query file q.fa
Processing query 0 ... Done. Scan time: 0.00750817 s, 3600.02 GCUPS
Processing query 1 ... Done. Scan time: 0.0180481 s, 3900.5 GCUPS
Total time: 0.0261 s, 3810.25 GCUPS
"""
CUDASW4_TABLE = """\
Query number\tQuery length\tQuery header\tResult number\tResult score\tReference length\t\
Reference header\tReference ID in DB
0\t144\tP02232.0\t0\t541\t148\tsp|P02233|LGB1_PEA.0\t2312
0\t144\tP02232.0\t1\t444\t144\tsp|P02238|LGBA_SOYBN.3\t2238
1\t375\tP01111.0\t0\t96\t144\tsp|P02238|LGBA_SOYBN.3\t2238
"""
GASAL2 = """\
query_name=query_1\ttarget_name=target_1\tscore=142\tquery_batch_start=0\ttarget_batch_start=36\t\
query_batch_end=149\ttarget_batch_end=185\tCIGAR=70M1X79M
query_name=query_0\ttarget_name=target_0\tscore=-16\tCIGAR=3D147M
"""
GASAL2_SAID = """\
sa=1 , sb=4 , gapo=6 , gape=1
Loading files....
Processing...

Done
Total execution time (in milliseconds): 53.210
"""
WFA_GPU = """\
File read: Wall time 0.412310s
Alignment computed. Wall time: 0.163s (3067484.663 alignments per second)
"""
WFA_GPU_FILE = "-16\t70M1X79M\n0\t150M\n-90\t\n"


def test_scores_and_speed_of_cudasw4():
    assert gpu_peers.cudasw4_scores(CUDASW4_TABLE) == {"P02232.0": [541, 444], "P01111.0": [96]}
    assert gpu_peers.cudasw4_gcups(CUDASW4) == ([3600.02, 3900.5], 3810.25)


def test_scores_and_time_of_gasal2():
    assert gpu_peers.gasal2_scores(GASAL2) == {"query_1": 142, "query_0": -16}
    assert gpu_peers.gasal2_seconds(GASAL2_SAID) == pytest.approx(0.05321)


def test_scores_and_time_of_wfa_gpu():
    assert gpu_peers.wfa_gpu_scores(WFA_GPU_FILE) == [-16, 0, -90]
    assert gpu_peers.wfa_gpu_seconds(WFA_GPU) == pytest.approx(0.163)


#: Programs that print and write the texts above, whatever they are asked.
STAND_INS = {
    "cudasw4": ("cudasw4.txt", "--of", "cudasw4.tsv"),
    "cudasw4-makedb": ("said", "", ""),
    "gasal2": ("gasal2.txt", "", ""),
    "wfa.affine.gpu": ("wfa.txt", "-o", "wfa.tsv"),
}
STAND_IN = """#!/bin/sh
cat "{texts}/{printed}"
cat "{texts}/said" >&2
while [ $# -gt 0 ]; do
    if [ "$1" = "{option}" ]; then cp "{texts}/{written}" "$2"; fi
    shift
done
"""


def test_a_run_beside_other_programs(tmp_path):
    texts = {
        "cudasw4.txt": CUDASW4,
        "cudasw4.tsv": CUDASW4_TABLE,
        "gasal2.txt": GASAL2,
        "wfa.txt": WFA_GPU,
        "wfa.tsv": WFA_GPU_FILE,
        "said": GASAL2_SAID,
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    for name, (printed, option, written) in STAND_INS.items():
        program = tmp_path / "bin" / f"{name}-1a2b3c4"
        program.write_text(
            STAND_IN.format(
                texts=tmp_path, printed=printed, option=option or "none", written=written
            )
        )
        program.chmod(0o755)
        (tmp_path / "bin" / name).symlink_to(program.name)
    ended = subprocess.run(
        [sys.executable, CHECKOUT / "benchmarks/gpu_peers.py", "--small", "--backend", "cpu"]
        + ["--pairs", "3", "-o", tmp_path / "lines"],
        env=os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in (tmp_path / "lines").open()]
    by = {(line["program"], line["part"], line["what"]): line for line in lines}
    assert {line["version"] for line in lines if line["program"] != "bwarp"} == {"1a2b3c4"}
    assert by["cudasw4", "search", "prepared, DPX"]["own_gcups"] == 3810.25
    # No query has a hit in the table.
    hits = 10 * by["bwarp", "search", "FASTA"]["queries"]
    assert by["cudasw4", "search", "prepared"]["different"] == hits
    assert by["gasal2", "pairs", "local, no output, 4 threads"]["own_seconds"] == 0.05321
    assert by["gasal2", "pairs", "local, its text"]["different"] in (2, 3)
    assert by["wfa.affine.gpu", "pairs", "global, its text"]["own_seconds"] == 0.163
    assert ("wfa.affine.gpu", "pairs", "local, its text") not in by
