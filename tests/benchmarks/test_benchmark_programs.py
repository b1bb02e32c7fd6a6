"""Every benchmark runs without arguments, on its own or found data, or names what it needs."""

import json
import sys

GPU = {
    "alignment_gpu.py",
    "allmap_gpu.py",
    "gpu_peers.py",
    "map_gpu.py",
    "map_gpus.py",
    "offtargets_gpu.py",
    "mems_gpu.py",
    "seeds_gpu.py",
    "small_gpus.py",
    "spread_gpus.py",
    "suffix_array.py",
}
#: Programs that need other programs, or real data.
MAY_SKIP = GPU | {"allmap_judges.py", "calls.py", "compare_alignments.py", "map_real.py"}
#: Programs that time the start of a program, start Python for a line of code, or run Snakemake.
STARTING = {"start_up.py", "index.py", "chain.py", "bam.py"}
DRAWING = {"draw_docs.py", "keep.py", "report.py"}

#: Runs a program whose subprocesses use another `python`.
LAUNCHER = """
import os, runpy, sys
sys.executable, *sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def pytest_generate_tests(metafunc):
    files = (metafunc.config.rootpath / "benchmarks").glob("*.py")
    programs = {path.name for path in files if "__main__" in path.read_text()} - DRAWING
    if "program" in metafunc.fixturenames:
        metafunc.parametrize("program", sorted(programs))


def test_with_small_data(checkout, program_servers, forked_python, tmp_path, program):
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    python = sys.executable if program in STARTING else forked_python.executable
    results = tmp_path / "results"
    output = ["-o", results] if program != "compare_alignments.py" else []
    rc, said, _ = next(program_servers).run(
        [tmp_path / "launcher.py", python, checkout / "benchmarks" / program, "--small", *output],
        environment={"CUDA_VISIBLE_DEVICES": ""},
        merged=True,
    )
    assert rc == 0, said
    skipped = f"{program}: skipped: " in said
    assert skipped or program not in GPU, said
    assert program in MAY_SKIP or not skipped, said
    if output and not skipped:
        lines = results.read_text().splitlines()
        assert lines
        assert all({"commit", "date", "machine"} <= json.loads(line).keys() for line in lines)
