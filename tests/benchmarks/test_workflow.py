"""`make bench` runs each benchmark separately and draws the results."""

import json
import subprocess
import sys

import pytest
import yaml

#: Quick benchmarks, two of them with the workflow's own genome or index.
FEW = ["fastq", "map", "map_sets", "seeds_located"]


@pytest.fixture(scope="module")
def bench(checkout, tmp_path_factory, snakemake_server):
    """Return a function that runs the workflow in a folder with a blank in its name."""
    folder = tmp_path_factory.mktemp("bench") / "a folder"
    folder.mkdir()
    environment = {"CUDA_VISIBLE_DEVICES": "", "BWARP_LARGE": str(folder)}

    def run(*arguments, rc=0) -> str:
        words = ["-m", "snakemake", "-s", checkout / "benchmarks/Snakefile"]
        words += ["--directory", folder, "--cores", "2", *arguments]
        code, said, _ = snakemake_server.run(words, environment=environment, merged=True)
        assert code == rc, said
        return said

    run.folder = folder
    return run


@pytest.fixture(scope="module")
def measured(bench):
    bench("--config", "small=true", f"only=[{','.join(FEW)}]")
    return bench


def test_the_report_of_small_data(measured):
    report = (measured.folder / "report.html").read_text()
    assert "map, FASTQ to SAM, reads per second" in report
    assert "data:image/svg+xml;base64," in report
    assert 'src="http' not in report
    assert 'href="http' not in report


def test_every_line_names_its_commit_and_machine(checkout, measured):
    names = ["peers.jsonl", "fastq.json", "map_cpu.json", "seeds_located.jsonl"]
    for name in names:
        lines = [json.loads(line) for line in (measured.folder / name).open()]
        assert lines, name
        for line in lines:
            assert {"commit", "date", "machine", "bwarp", "python"} <= line.keys(), name


def test_a_program_that_is_not_installed_is_a_line(measured):
    lines = [json.loads(line) for line in (measured.folder / "peers.jsonl").open()]
    missing = [line for line in lines if line["version"] is None]
    report = (measured.folder / "report.html").read_text()
    assert report.count("<td>not installed</td>") == len(missing)


def test_nothing_is_measured_twice(measured):
    said = measured("--config", "small=true", f"only=[{','.join(FEW)}]", "-n")
    assert "Nothing to be done" in said


def test_timings_run_alone(bench):
    """Each benchmark takes all cores."""
    said = bench("--config", "small=true", "-n", "--verbose")
    rules = said.split("rule measure_")[1:]
    assert len(rules) > 15
    assert all("threads: 2" in rule.split("rule ")[0] for rule in rules)


def test_an_unknown_name(bench):
    said = bench("--config", "only=[mapp]", "-n", rc=1)
    assert "mapp: there is no such benchmark" in said


def test_a_benchmark_that_fails_leaves_the_report_of_the_others(measured):
    broken = measured.folder / "broken.yaml"
    broken.write_text("benchmarks: {fastq: {data: --no-such-option}}\n")
    few = ["--config", "small=true", f"only=[{','.join(FEW)}]"]
    measured("--configfile", broken, "--keep-going", *few, rc=1)
    report = (measured.folder / "report.html").read_text()
    assert "failed: fastq.py: error: unrecognized arguments: --no-such-option" in report
    assert "map, FASTQ to SAM, reads per second" in report


def test_a_price_is_that_of_a_million_reads(checkout, measured):
    (line,) = (
        line
        for line in map(json.loads, (measured.folder / "map_cpu.json").open())
        if line["mapper"] == "bwarp"
    )
    price = 3.6 * line["wall_seconds"] / 3600 / line["reads"] * 1e6
    report = measured.folder / "priced.html"
    command = [sys.executable, checkout / "benchmarks/report.py", measured.folder, "--alone"]
    subprocess.run([*command, "--cpu-price", "3.6", "-o", report], check=True)
    assert "price of a million reads" in report.read_text()
    assert f">{price:.2g}</td>" in report.read_text()
    assert "price of a million" not in (measured.folder / "report.html").read_text()


def test_a_run_with_small_data_is_not_kept(checkout, measured):
    command = [sys.executable, checkout / "benchmarks/keep.py", measured.folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "has a run of little data" in done.stderr


def test_a_benchmark_that_takes_too_long_is_stopped(measured):
    limited = ["--config", "small=true", f"only=[{','.join(FEW)}]", "limit=1"]
    measured("--forcerun", "measure_map_sets", "--keep-going", *limited, rc=1)
    report = (measured.folder / "report.html").read_text()
    assert "failed: stopped after 1 seconds" in report


def benchmarks_of(checkout) -> dict[str, dict]:
    return yaml.safe_load((checkout / "benchmarks/config.yaml").read_text())["benchmarks"]


def test_every_program_that_measures_is_a_benchmark(checkout):
    listed = {
        fields.get("program", f"{name}.py") for name, fields in benchmarks_of(checkout).items()
    }
    programs = {
        path.name
        for path in (checkout / "benchmarks").glob("*.py")
        if "read_options(" in path.read_text()
    }
    assert programs - {"peers.py", "compare_alignments.py"} == listed


def test_the_code_that_is_measured_is_there(checkout):
    for name, fields in benchmarks_of(checkout).items():
        for path in fields["measures"]:
            assert (checkout / path).exists(), f"{name}: {path}"
