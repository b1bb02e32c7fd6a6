"""Every figure of speed in the pages has a line of results.

Tables between the markers of benchmarks/draw_docs.py are drawn from the lines. Other figures, in
text and in hand-written tables, must be numbers, rounded as shown, in a file of results that the
page names, of a benchmark that it names, or in by_hand.jsonl. The last file has values that no
program in benchmarks/ measures, and those that papers report.
"""

import bisect
import json
import re

import pytest
import yaml

#: Units of speed, and possible factors to the number in a line of results: 1.5 ms is 0.0015 s.
UNITS = {
    "s": (1,),
    "seconds": (1,),
    "ms": (1, 1e-3, 1e3),
    "us": (1, 1e-6),
    "GCUPS": (1,),
    "TCUPS": (1, 1e3),
    "G/s": (1, 1e9),
    "reads per second": (1,),
    "million reads per second": (1, 1e6),
}
UNIT = "|".join(sorted(UNITS, key=len, reverse=True))
NUMBER = r"\d[\d,]*(?:\.\d+)?"
#: A number with its unit, or one of several numbers before a unit: 13.0 and 12.6 s.
FIGURE = re.compile(
    rf"(?<![\w.-])(?<!\d m )({NUMBER})(?=(?:(?:,| to| and| or) {NUMBER})* ({UNIT})\b)", re.MULTILINE
)
DRAWN = re.compile(r"<!-- table (.*?): begin -->.*?<!-- table \1: end -->", re.DOTALL)
BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def figures_of(text: str) -> list[tuple[str, str]]:
    """Return numbers and units in a page, without drawn tables and code."""
    return FIGURE.findall(re.sub(r"\s+", " ", BLOCK.sub("", DRAWN.sub("", text))))


def numbers_in(value) -> list[float]:
    """Yield every number in a JSON value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers_in(part)]
    return [float(value)] if isinstance(value, (int, float)) else []


def has(numbers: list[float], text: str, scales) -> bool:
    """Return whether a number, rounded as shown, is among sorted ones."""
    digits = text.replace(",", "")
    zeros = re.search(r"(?:,000)*$", text)[0].count("0")
    step = 10.0 ** (zeros - len(digits.partition(".")[2]))
    for scale in scales:
        # A value in the middle may be rounded either way.
        low, high = ((float(digits) + half * step) * scale for half in (-0.501, 0.501))
        at = bisect.bisect_left(numbers, low)
        if at < len(numbers) and numbers[at] <= high:
            return True
    return False


def named_results(checkout, text: str) -> set[str]:
    """Return the files of results that a page names, and those of benchmarks that it names."""
    names = {"by_hand.jsonl"} | set(re.findall(r"benchmarks/results/([\w.]+\w)", text))
    config = yaml.safe_load((checkout / "benchmarks/config.yaml").read_text())["benchmarks"]
    for name, fields in config.items():
        if f"benchmarks/{fields.get('program', f'{name}.py')}" in text:
            names.add(fields["results"])
    return names


def without_lines(checkout, text: str) -> list[str]:
    """Return the figures in a page that are in no line of results."""
    numbers = []
    for name in named_results(checkout, text):
        path = checkout / "benchmarks/results" / name
        for line in path.open() if path.is_file() else ():
            numbers += numbers_in(json.loads(line))
    numbers.sort()
    return [f"{n} {unit}" for n, unit in figures_of(text) if not has(numbers, n, UNITS[unit])]


def pages(checkout):
    return [checkout / "README.md", *sorted((checkout / "docs").glob("*.md"))]


def pytest_generate_tests(metafunc):
    if "page" in metafunc.fixturenames:
        found = pages(metafunc.config.rootpath)
        metafunc.parametrize("page", found, ids=[page.name for page in found])


def test_figures_have_lines(checkout, page):
    assert not without_lines(checkout, page.read_text())


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("1.44 s and 1.02 s (`benchmarks/results/allmap_cpu.jsonl`)", []),
        ("It takes 1.44 or 77.7 s (`benchmarks/allmap.py`)", ["77.7 s"]),
        ("It takes 1.44 s.", ["1.44 s"]),
    ],
)
def test_a_figure_without_a_line_is_found(tmp_path, text, missing):
    results = tmp_path / "benchmarks/results"
    results.mkdir(parents=True)
    (tmp_path / "benchmarks/config.yaml").write_text(
        "benchmarks: {allmap: {results: allmap_cpu.jsonl}}"
    )
    lines = ({"seconds": seconds} for seconds in (1.444, 1.021))
    (results / "allmap_cpu.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert without_lines(tmp_path, text) == missing
