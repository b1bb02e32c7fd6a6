"""Drawing from result lines: ages, falls, curves, tables."""

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "benchmarks"))

from draw_docs import without_age  # noqa: E402
from drawing import age, figures  # noqa: E402
from drawing.accuracy import calibration, roc  # noqa: E402
from drawing.accuracy_tables import TABLES as ACCURACY_TABLES  # noqa: E402
from drawing.figures import Figure, machine_of  # noqa: E402
from drawing.gpu_tables import TABLES as GPU_TABLES  # noqa: E402
from drawing.panels import Axis, Panel, panels  # noqa: E402
from drawing.paper_tables import chang_on_gpu, drozd, liu_on_gpu  # noqa: E402
from drawing.tables import Table, as_html, as_markdown  # noqa: E402
from drawing.whole_runs import options_of_mapping, scaling, whole_run_rows  # noqa: E402
from frame import environment, peers  # noqa: E402


def figure(value: float, unit: str = "s", what: str = "job", commit: str | None = None) -> Figure:
    line = {"machine": "CPU, 2 cores", "commit": commit}
    return Figure(what, "data", value, unit, f"{value} {unit}", "", line, "map_cpu.json")


@pytest.mark.parametrize(
    ("before", "now", "unit", "fell"),
    [
        (1.0, 1.2, "s", True),
        (1.2, 1.0, "s", False),
        (1.0, 1.04, "s", False),
        (100, 80, "reads/s", True),
        (80, 100, "reads/s", False),
    ],
)
def test_falls(before, now, unit, fell):
    found = age.falls([figure(before, unit)], [figure(now, unit), figure(9, unit, "other job")])
    assert bool(found) is fell
    if fell:
        assert found[0].times == pytest.approx(max(before, now) / min(before, now))


def test_figures_of_other_machines_are_not_compared():
    now = figure(9.0)._replace(line={"gpu": "GPU", "machine": "CPU, 2 cores"})
    assert not age.falls([figure(1.0)], [now])


def forget_what_git_said():
    for said in (age.has_changed_since, age._differs, age._imported):
        said.cache_clear()


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """Return a function that commits a text to a new repository and returns the commit."""

    def git(*words) -> str:
        named = ["-c", "user.name=a", "-c", "user.email=a@b"]
        command = ["git", "-C", str(tmp_path), *named, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def commit(name: str, text: str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        git("add", "-A")
        git("commit", "-qm", "a change")
        return git("rev-parse", "--short=9", "HEAD")

    git("init", "-q")
    monkeypatch.setattr(environment, "CHECKOUT", tmp_path)
    forget_what_git_said()
    yield commit
    forget_what_git_said()


def test_a_line_is_older_when_its_code_has_changed(repository):
    first = repository("bwarp/mapping/a.py", "1")
    second = repository("docs/page.md", "2")
    assert age.age_of({"commit": first}, "map_cpu.json") == first[:8]
    third = repository("bwarp/mapping/a.py", "3")
    forget_what_git_said()
    assert age.age_of({"commit": first}, "map_cpu.json") == f"{first[:8]} (older)"
    assert age.age_of({"commit": second}, "map_cpu.json") == f"{second[:8]} (older)"
    assert age.age_of({"commit": f"{third}+"}, "map_cpu.json") == f"{third[:8]}+"
    assert age.age_of({"commit": "0123456789"}, "map_cpu.json") == "01234567 (age unknown)"
    assert age.age_of({}, "map_cpu.json") == "unknown"


@pytest.mark.parametrize(
    ("name", "of_cpu", "of_gpu"),
    [
        ("mapping/score.py", True, True),
        ("mapping/score_cuda.py", False, True),
        ("gpu/sort.py", False, True),
        ("gpu/other.py", False, False),
    ],
)
def test_code_that_a_figure_does_not_run_makes_no_line_older(repository, name, of_cpu, of_gpu):
    repository("bwarp/__init__.py", "")
    repository("bwarp/mapping/score_cuda.py", "from bwarp.gpu.sort import sort\n")
    for path in ("mapping/score.py", "gpu/sort.py", "gpu/other.py"):
        first = repository(f"bwarp/{path}", "1")
    path = environment.CHECKOUT / "bwarp" / name
    repository(f"bwarp/{name}", f"{path.read_text()}\nx = 1\n")
    for results, is_older in (("map_cpu.json", of_cpu), ("map_h200.jsonl", of_gpu)):
        words = f"{first[:8]} (older)" if is_older else first[:8]
        assert age.age_of({"commit": first}, results) == words


def test_a_gpu_line_of_any_benchmark_can_be_older(repository):
    first = repository("bwarp/index/build_cuda.py", "1")
    repository("bwarp/index/build_cuda.py", "2")
    results = "index_whole_genome.jsonl"
    assert age.age_of({"commit": first}, results) == first[:8]
    assert age.age_of({"commit": first, "gpu": "a GPU"}, results) == f"{first[:8]} (older)"


@pytest.mark.parametrize(
    ("name", "then", "now", "is_older"),
    [
        (
            "a.py",
            'def f(x):\n    """Say."""\n    return x\n',
            "def f(x):  # why\n  return x\n",
            False,
        ),
        ("a.py", "def f(x):\n    return x\n", "def f(x):\n    return -x\n", True),
        ("a.tsv", "one", "two", True),
    ],
)
def test_comments_make_no_line_older(repository, name, then, now, is_older):
    first = repository(f"bwarp/mapping/{name}", then)
    repository(f"bwarp/mapping/{name}", now)
    words = f"{first[:8]} (older)" if is_older else first[:8]
    assert age.age_of({"commit": first}, "map_cpu.json") == words


def test_earlier_figures_have_the_last_different_value(repository):
    path = "benchmarks/results/start_up.jsonl"

    def line(seconds: float) -> dict:
        return {"what": "map", "use": "later", "bases": 1e6, "seconds": seconds, "machine": "CPU"}

    for seconds in (0.5, 0.4, 0.6):
        repository(path, json.dumps(line(seconds)))
    repository(path, json.dumps(line(0.6)) + "\n")
    now = figures.all_figures(lambda name: [line(0.6)] if name == "start_up.jsonl" else [])
    before = age.earlier_figures(now)
    assert [one.value for one in before] == [0.4]
    assert [fall.times for fall in age.falls(before, now)] == [pytest.approx(1.5)]


@pytest.mark.parametrize(
    ("line", "machine"),
    [
        ({"machine": "AMD EPYC, 2 cores"}, "AMD EPYC, 2 cores"),
        ({"machine": "AMD EPYC, 2 cores", "threads": 1}, "AMD EPYC, 1 core"),
        ({"machine": "AMD EPYC, 16 cores", "gpu": "NVIDIA H200"}, "NVIDIA H200"),
        ({"machine": "x", "gpu": "NVIDIA H200", "threads": 16}, "NVIDIA H200, 16 cores"),
    ],
)
def test_the_machine_of_a_line(line, machine):
    assert machine_of(line) == machine


def test_curves_of_accuracy():
    steps = [
        {"least": 0, "reads": 100, "claimed": 50.0, "wrong": 40},
        {"least": 10, "reads": 900, "claimed": 9.0, "wrong": 1},
    ]
    line = {"calibration": steps, "unmapped": 0}
    assert roc(line) == [(1e6 * 1 / 1000, 89.9), (1e6 * 41 / 1000, 95.9)]
    (low, high) = calibration([line, line])
    assert low == pytest.approx((3.01, 3.95), abs=0.01)
    assert high == pytest.approx((20.0, 28.57), abs=0.01)


def test_curves_of_every_quality_are_those_of_its_steps():
    right, wrong = [0] * 61, [0] * 61
    right[60], wrong[60], right[0], wrong[0] = 900, 0, 50, 25
    line = {"right_by_quality": right, "wrong_by_quality": wrong, "unmapped": 25}
    assert roc(line) == [(1, 90.0), (25_000, 95.0)]


def test_panels_are_an_svg_with_a_line_each():
    axis = Axis("x", 0, 10, (0, 10))
    parts = [Panel("<a>", {"one": [(0, 0), (20, 5)]}, axis), Panel("b", {"two": [(1, 1)]}, axis)]
    tree = ElementTree.fromstring(panels("title", axis, parts, 2, ["one", "two"]))
    lines = [element for element in tree.iter() if element.tag.endswith("polyline")]
    # Points outside are drawn at the edge.
    assert [line.get("points").split()[-1].split(",")[0] for line in lines] == ["200.0", "20.0"]


def test_a_table_names_its_lines():
    table = Table(["a", "b"], [("<1>", 2)], [{"commit": None}], "map_cpu.json")
    assert as_markdown(table).splitlines() == [
        *("| a | b |", "|---|---|", "| <1> | 2 |", ""),
        "*benchmarks/results/map_cpu.json, commit unknown.*",
    ]
    assert "<td>&lt;1&gt;</td>" in as_html(table)


def test_the_price_of_whole_runs_is_that_of_their_machine():
    size = {"bases": 3e9, "pairs": 500_000}
    lines = {
        "map_cores.jsonl": [
            {"what": "map fq to SAM", "wall_seconds": 36.0, "memory_mb": 10, **size},
            {"what": "phase: load", "wall_seconds": 1.0, **size},
        ],
        "map_h200.jsonl": [
            {
                "what": "gzipped FASTQ to sorted BAM",
                "seconds": 3.6,
                "host_gb": 2,
                "gpu": "A",
                **size,
            }
        ],
    }
    heads, rows = whole_run_rows(lambda name: lines.get(name, []), {"cpu": 2.0, "gpu": 30.0})
    assert heads[-1] == "price of a million reads"
    assert [(row[0], row[2], row[-2], row[-1]) for row in rows] == [
        ("FASTQ to SAM", "1,000,000", "10", "0.02"),
        ("FASTQ.gz to sorted BAM", "1,000,000", "2,000", "0.03"),
    ]
    _, rows = whole_run_rows(lambda name: lines.get(name, []), {"gpu": 30.0})
    assert [row[-1] for row in rows] == ["", "0.03"]
    heads, rows = whole_run_rows(lambda name: lines.get(name, []), {})
    assert len(heads) == len(rows[0]) == 8


def test_scaling_has_a_row_per_job_and_a_column_per_mapper():
    job = {
        "part": "reads",
        "reads": 1000,
        "threads": 2,
        "bases": 5e6,
        "memory_mb": 7,
        "commit": "a",
    }
    lines = [
        job | {"mapper": "bwarp", "wall_seconds": 0.5},
        job | {"mapper": "minimap2", "wall_seconds": 2.0},
        job | {"mapper": "bwarp", "wall_seconds": 0.25, "threads": 4},
    ]
    table = scaling(lambda name: lines if name == "map_scaling.jsonl" else [])
    assert table.heads[-2:] == ["bwarp", "minimap2"]
    assert table.rows == [
        ("reads", "1,000", 2, "5 Mb", "2,000; 7 MB", "500; 7 MB"),
        ("reads", "1,000", 4, "5 Mb", "4,000; 7 MB", ""),
    ]


def test_runs_on_gpus_say_what_they_ran_on():
    host = {"machine": "CPU, 16 cores", "threads": 16, "gpu": "H100"}
    rates = {"reads_a_second_not_compressed": 3_600_000}
    lines = [
        {**host, "gpus": 1, "gb_free": None, "seconds": 8.4, "host_gb": 11.5, **rates},
        {**host, "gpus": 1, "gb_free": 24, "seconds": 7.66, "host_gb": 11.7, **rates},
        {**host, "gpus": 2, "threads": 32, "gb_free": None, "seconds": 8.2, **rates},
        {**host, "gpus": 0, "seconds": 55.89, "host_gb": 13.6},
        {**host, "version": "0.16.1", "seconds": 69.0, "mapping_seconds": 51.8},
    ]
    rows = GPU_TABLES["mapping on GPUs"](lambda _: lines).rows
    assert [row[:4] for row in rows] == [
        ("one GPU", "all", "H100, 16 cores", "8.4"),
        ("one GPU", "24 GB", "H100, 16 cores", "7.7"),
        ("2 GPUs", "all", "H100, 32 cores", "8.2"),
        ("the CPUs", "", "CPU, 16 cores", "55.9"),
        ("strobealign 0.16.1, to SAM", "", "CPU, 16 cores", "69.0, of which 51.8 to map"),
    ]
    assert rows[0][4:] == ("3.60 M", 11.5)
    assert rows[3][4:] == ("", 13.6)


def test_small_gpus_have_a_row_per_size_and_a_column_per_program():
    lines = [
        {"program": "find_mems", "gb_free": None, "seconds": 3.09},
        {"program": "map_reads", "gb_free": None, "seconds": 6.73},
        {"program": "map_reads", "gb_free": 6.0, "seconds": 6.37},
    ]
    found = GPU_TABLES["programs on small GPUs"](lambda _: lines)
    assert found.rows == [("all", "6.7 s", "", "3.1 s", ""), ("6 GB", "6.4 s", "", "", "")]


def test_references_are_in_the_order_of_their_size():
    def line(size: int, program: str) -> dict:
        of = {"what": "unique matches of 5 reads", "reference": f"{size} Mb of chr20"}
        of |= {"bwarp_index_s": size / 4, "commit": "a", "machine": "CPU"}
        return of | {"program": program, "seconds": size / 10}

    lines = [line(size, program) for size in (16, 4, 32) for program in ("bwarp", "mummer")]
    table = drozd(lambda name: lines if name == "mems_cpu.jsonl" else [])
    assert [row[0] for row in table.rows] == ["4 Mb of chr20", "16 Mb of chr20", "32 Mb of chr20"]
    assert table.rows[0][2:5] == ("1 s", "0.4 s", "0.4 s")


def test_ages_are_not_compared(monkeypatch):
    lines = [{"commit": "0123456789"}, {"commit": "abcdef0123"}]
    table = Table(["a"], [("1 (older)",)], lines, "map_cpu.json")
    drawn = set()
    for is_older in (False, True, None):
        monkeypatch.setattr("drawing.age.has_changed_since", lambda *_, answer=is_older: answer)
        drawn.add(without_age(as_markdown(table)))
    assert len(drawn) == 1


def test_a_missing_program_is_reported_once(monkeypatch, capsys):
    monkeypatch.setattr(peers.shutil, "which", lambda _: None)
    peers.version_of.cache_clear()
    peers.found.cache_clear()
    assert not peers.found("bwa")
    assert not peers.found("bwa")
    assert capsys.readouterr().err == "bwa: not installed (apt install bwa)\n"
    peers.version_of.cache_clear()
    peers.found.cache_clear()


def test_every_line_in_git_has_a_commit_or_is_published():
    for path in (CHECKOUT / "benchmarks/results").glob("*.json*"):
        for line in map(json.loads, path.open()):
            assert line.get("commit") or line.get("published"), path.name


def test_chang_and_chen_time_one_query():
    part = {"part": "time table III", "what": "profile 128"}
    lines = [
        part | {"queries": 1, "ms": {"spread_targets": 0.04, "align_strip": 0.06}},
        part | {"queries": 2, "ms": {"spread_targets": 0.05, "align_strip": 0.07}},
        {"part": "time table III", "what": "profile 128, all queries", "seconds": 0.001},
    ]
    published = [{"part": "chang", "length": 128, "published_method": 1.65}]
    results = {"alignment_gpu.jsonl": lines, "search_cpu.jsonl": published}
    table = chang_on_gpu(results.__getitem__)
    assert table.rows == [(128, "", "0.1", 1.65)]
    assert table.lines == lines[:1]


def test_seeds_on_a_gpu_are_drawn_beside_the_papers_times():
    def run(seconds: list[float], max_hits: int, hits: int) -> dict:
        return {
            "dataset": "S11", "seconds": seconds, "search_seconds": 0.02, "max_hits": max_hits,
            "hits": hits, "over": 7,
        }  # fmt: skip

    line = {
        "bases": 3_100_000_000, "whole_runs_auto": [run([3, 1, 2], 128, 1000)],
        "whole_runs_hybrid": [run([5, 4, 6], 128, 1000)],
        "whole_runs_all_located": [run([9, 8, 7], 0, 2_000_000)],
    }  # fmt: skip
    first, last = liu_on_gpu(lambda _: [line]).rows
    assert first[2:] == (
        "at most 128", "1,000", "7", "2 s", "0.02 s", "5 s", "10.6 s", "6.8 s"
    )  # fmt: skip
    assert last[2:] == ("all", "2,000,000", "7", "8 s", "0.02 s", "", "10.6 s", "6.8 s")


def test_options_of_mapping_by_engine():
    """Later lines replace earlier ones; an engine may lack an option."""
    common = {"commit": None, "machine": "CPU, 2 cores", "threads": 2, "reads": 300_000}
    plain = common | {"option": "BAM", "beside": None, "seconds": 2.0, "seconds_without": None}
    eqx = common | {"option": "`--eqx`", "beside": "BAM", "seconds": 9.0, "seconds_without": 2.0}
    counts = {"records": 900, "records_without": 300}
    every = common | {"option": "`--all`", "beside": "BAM", "seconds": 3.0, "seconds_without": 2.0}
    lines = [
        plain, eqx, eqx | {"seconds": 2.1}, eqx | {"gpu": "GPU", "seconds": 2.2}, every | counts
    ]  # fmt: skip
    drawn = options_of_mapping(lambda _: lines)
    assert drawn.heads[2:] == [
        "CPU, 2 cores: seconds, 300,000 reads",
        "GPU, 2 cores: seconds, 300,000 reads",
    ]
    assert drawn.rows == [
        ("BAM", "", "2.00", ""),
        ("`--eqx`", "BAM", "2.10, 1.05 x", "2.20, 1.10 x"),
        ("`--all`", "BAM", "3.00, 1.50 x for 3.00 x the records", ""),
    ]
    assert not options_of_mapping(lambda _: []).lines


def test_calls_have_versions_and_absent_callers():
    counts = {"true": 10, "correct": 8, "incorrect": 2}
    line = {
        "what": "structural calls", "reference": "chr20_40-42_Mb.fa", "mapper": "bwa mem",
        "version": "1", "caller": "delly", "caller_version": "2", "absent": ["lumpyexpress"],
        "DEL": counts, "DUP": counts, "INV": counts,
    }  # fmt: skip
    drawn = ACCURACY_TABLES["calls of structural variants"](lambda _: [line])
    names = "chr20 40-42 Mb", "bwa mem 1", "delly 2; lumpyexpress absent"
    assert drawn.rows == [names + 3 * ("80.00", "80.00", "80.00")]
