"""The jobs that run again after a change of a key, a column or a file are those in the page."""

import copy
import json
import re
import shutil
from typing import NamedTuple

import pytest
import yaml

from bwarp.index.parameters import choose_parameters
from bwarp.options.configuration import configuration_schema
from tests.conftest import CHECKOUT

# Files with the same names are in other/: names of results do not contain folders.
CONFIG = {
    "reference": "small.fa",
    "samples": "units.tsv",
    "backend": "cpu",
    "index": {"sa_rate": 4, "occ_rate": 64, "prefix_length": "auto"},
    "map": {"batch_reads": 60, "regions": "regions.bed", "alt": "alt.txt"},
    "allmap": {"edits": 2, "gaps": 1, "extension": "semiglobal"},
    "seeds": {"queries": "queries.fa", "parts": 2, "k": 20, "mismatches": 1},
    "offtargets": {"guides": "queries.fa", "annotation": "regions.bed"},
    "guides": {"bed": "regions.bed", "exclude": "regions.bed", "annotation": "regions.bed"},
    "primers": {"pairs": "primers.tsv"},
    "mems": {"queries": "queries.fa"},
    "scan": {"queries": "other/small.fa", "similarity": 0.9},
    "pairs": {"references": "other/queries.fa", "queries": "queries.fa"},
    "search": {"queries": "queries.fa", "database": "other/queries.fa", "match": 2},
}

TARGETS = [name for name in CONFIG if isinstance(CONFIG[name], dict)]

# Rows of samples and units. The unit of sample b is mapped in two parts.
SHEET = {
    ("a", "1"): {"fq1": "a1.fq;b1.fq", "fq2": "a2.fq;b2.fq"},
    ("a", "2"): {"fq1": "c.fq", "fq_single": "d.fq"},
    ("b", "1"): {"fq1": "e1.fq", "fq2": "e2.fq"},
}

# Other values for keys that are neither numbers nor choices, and for some others.
VALUES = {
    "backend": "cuda",
    "index.prefix_length": 5,
    "map.batch_reads": 40,
    "map.insert_size": "400,60",
    "map.barcode_tag": "RX",
    "map.alt": "none",
    "map.qc_regions": "regions.bed",
    "allmap.edits": "3%",
    "allmap.gaps": "auto",
    "allmap.report": "best",
    "allmap.insert_size": "400,60",
    "allmap.filter": "off",
    "allmap.batch_size": 50,
    "allmap.seed_mismatches": 1,
    "seeds.k": 21,
    "seeds.pam": "NGG",
    "seeds.chunk_bases": 3000,
    "mems.chunk_bases": 4000,
    "offtargets.pam": "none",
    "offtargets.variants": ["regions.bed"],
    "offtargets.populations": "regions.bed",
    "offtargets.genomes": ["regions.bed"],
    "offtargets.alignments": ["regions.bed"],
    "offtargets.report_link": "https://localhost/{contig}",
    "guides.pam": "none",
    "guides.variants": ["regions.bed"],
    "pairs.free_ends": "query-start",
    "pairs.matrix": "BLOSUM62",
    "search.matrix": "BLOSUM62",
    "scan.similarity": 0.8,
    **dict.fromkeys(
        ("seeds.parts", "offtargets.parts", "mems.parts", "scan.parts", "search.parts"), 3
    ),
}

# Keys that have an effect only with another one.
WITH = {"map.qc_regions": {"map.qc": True}}


class Change(NamedTuple):
    """A change of the configuration or the sheet, and the jobs that must run again."""

    name: str
    sections: frozenset  # targets whose results it may change; only one change at a time
    again: frozenset  # targets, and units such as "map a/1"
    config: dict = {}  # dotted keys
    sheet: dict | None = None


def other_value(key: str, rule: dict, value):
    """Return a different value for a key."""
    if key in VALUES:
        return VALUES[key]
    if rule.get("file"):
        return f"other/{value}".replace("other/other/", "")
    if rule.get("type") == "boolean":
        return not value
    allowed = rule.get("enum") or [rule["minimum"], rule["maximum"]]
    return next(one for one in allowed if one != value)


def keys(schema: dict, path=()):
    for key, rule in schema["properties"].items():
        if "properties" in rule:
            yield from keys(rule, (*path, key))
        else:
            yield ".".join((*path, key)), rule


def rows():
    """Return the page's table: first cells, and targets in the second cells, or None."""
    page = (CHECKOUT / "docs/gpu-and-cluster.md").read_text()
    table = page[page.index("| what changed | what runs again |") :].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        changed, again = line.strip("| ").split(" | ")
        named = [name for name in re.findall(r"`(\w+)`", again) if name in TARGETS]
        yield changed, named or ([] if again.startswith("nothing") else None)


def made_again(targets, samples=("a", "b"), sheet=SHEET) -> set:
    """Return the targets, with samples and their units where they have these, and the report."""
    found = set(targets) - {"map", "allmap"}
    found |= {"report"} if "map" in targets else set()
    for target in {"map", "allmap"} & set(targets):
        for sample, unit in sheet:
            if sample in samples:
                found |= {f"{target} {sample}", f"{target} {sample}/{unit}"}
    return found


def changes_of_keys():
    """Return one change for each key of the schema."""
    schema = configuration_schema()
    for key, rule in keys(schema):
        section, _, name = key.rpartition(".")
        value = CONFIG[section].get(name, rule.get("default")) if section else CONFIG[key]
        named = [again for changed, again in rows() if f"`{key}`" in changed]
        again = [section] if named in ([], [None]) else named[0]
        samples = ("b",) if key == "map.batch_reads" else ("a", "b")
        sections = frozenset([section] if section not in ("", "index") else TARGETS)
        config = {key: other_value(key, rule, value), **WITH.get(key, {})}
        yield Change(key, sections, frozenset(made_again(again, samples)), config)


def changes_of_the_sheet():
    """Return one or more changes for each column, and the page's statement about it."""
    a1, a2, b1 = SHEET
    cells = "the order of files in a cell"
    for said, sample, sheet, reads in [
        ("`fq2`", "a", sheet_with(a1, fq1="a2.fq;b2.fq", fq2="a1.fq;b1.fq"), a1),
        ("`fq1`", "b", sheet_with(b1, fq1="e2.fq", fq2="e1.fq"), b1),
        (cells, "a", sheet_with(a1, fq1="b1.fq;a1.fq", fq2="b2.fq;a2.fq"), a1),
        ("`fq_single`", "a", sheet_with(a2, fq1="d.fq", fq_single="c.fq"), a2),
        ("`interleaved`", "a", sheet_with(a2, interleaved="yes"), a2),
        ("`platform`", "a", sheet_with(a1, platform="DNBSEQ"), None),
        ("`library`", "b", sheet_with(b1, library="l"), None),
        ("`platform_unit`", "b", sheet_with(b1, platform_unit="u"), None),
        ("`center`", "b", sheet_with(b1, center="c"), None),
        ("`sample`", "c", sheet_of((a1, a1), (a2, a2), (("c", "1"), b1)), ("c", "1")),
        ("`unit`", "b", sheet_of((a1, a1), (a2, a2), (("b", "2"), b1)), ("b", "2")),
        ("added", "b", {**SHEET, ("b", "2"): {"fq1": "f.fq"}}, ("b", "2")),
        ("removed", "a", sheet_of((a2, a2), (b1, b1)), None),
        ("order of the units", "a", sheet_of((a2, a2), (a1, a1), (b1, b1)), None),
        ("order of the samples", "", sheet_of((b1, b1), (a1, a1), (a2, a2)), None),
    ]:
        (again,) = [again for changed, again in rows() if said in changed]
        expected = made_again(again, (sample,), sheet) if again else {"report"}
        if reads:
            expected = with_batches(expected, *reads)
        sections = frozenset({"map", "allmap"})
        yield Change(f"{said} of {sample}", sections, frozenset(expected), {}, sheet)


def sheet_with(names, **cells):
    """Return the sheet with other cells in a line."""
    return SHEET | {names: SHEET[names] | cells}


def sheet_of(*lines):
    """Return a sheet with lines of `SHEET` under other names, or in another order."""
    return {names: SHEET[of] for names, of in lines}


def with_batches(again, sample, unit):
    """Return the plan for cutting reads into batches again, which lacks the later steps."""
    searched = {name for name in again if name.startswith(f"allmap {sample}/")}
    return again - searched | {f"batches {sample}/{unit}"}


def rounds() -> list[list[Change]]:
    """Return all changes, combined across sections, because a dry run takes a second."""
    together = []
    exchanged = [
        ("pairs", {"pairs.references": "queries.fa", "pairs.queries": "other/queries.fa"}),
        ("search", {"search.queries": "other/queries.fa", "search.database": "queries.fa"}),
    ]
    changes = [Change(name, frozenset([name]), frozenset([name]), new) for name, new in exchanged]
    for change in [*changes_of_the_sheet(), *changes_of_keys(), *changes]:
        for others in together:
            if not any(change.sections & other.sections for other in others):
                others.append(change)
                break
        else:
            together.append([change])
    return together


@pytest.fixture(scope="module")
def finished(make_copy):
    """Make a copy in which all targets exist for Snakemake; its files are empty."""
    folder = make_copy(forks=True)
    contig = (folder / "small.fa").read_text().split("\n")[1]
    for name in ("a1", "a2", "b1", "b2", "c", "d", "e1", "e2", "f"):
        n_reads = 100 if name[0] == "e" else 2
        record = f"\n{contig[:50]}\n+\n{'I' * 50}\n"
        (folder / f"{name}.fq").write_text("".join(f"@{n}{record}" for n in range(n_reads)))
    (folder / "queries.fa").write_text(f">q\n{contig[:60]}\n")
    for name in ("primers.tsv", "regions.bed", "alt.txt"):
        (folder / name).write_text("")
    (folder / "other").mkdir()
    own = arguments(folder, CONFIG, SHEET)
    for name in ("small.fa", "units.tsv", "queries.fa", "primers.tsv", "regions.bed"):
        shutil.copy(folder / name, folder / "other")
    # Files of batches are read, so these have content.
    folder.snakemake(
        *(f"results/allmap/batches/{sample}/{unit}" for sample, unit in SHEET), *own[-2:]
    )
    sampling = choose_parameters(20_000).__dict__ | {"text_length": 20_000}
    (folder / "results/index/small").mkdir(parents=True)
    (folder / "results/index/small/index.json").write_text(json.dumps(sampling))
    for names in re.findall(r"^    output: (.*)$", folder.snakemake("-n", *own), re.MULTILINE):
        for path in map(folder.folder.joinpath, names.split(", ")):
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() and path.suffix:
                path.write_text("null")
            elif not path.exists():
                path.mkdir()
    folder.snakemake("--touch", "--forceall", *own)
    assert planned(folder, CONFIG, SHEET) == set()
    return folder


def arguments(folder, config, sheet):
    """Write a configuration and its sheet; return the arguments for making every target."""
    columns = dict.fromkeys(column for cells in sheet.values() for column in cells)
    lines = ["\t".join(["sample", "unit", *columns])]
    for names, cells in sheet.items():
        lines.append("\t".join([*names, *(cells.get(column, "") for column in columns)]))
    (folder / "units.tsv").write_text("\n".join(lines) + "\n")
    (folder / "mine.yaml").write_text(yaml.safe_dump(config))
    return (*TARGETS, "results/report.html", "--configfile", "mine.yaml")


def owners() -> dict[str, str]:
    """Return the target of each rule, by the file that contains the rule."""
    found = {}
    for path in sorted((CHECKOUT / "workflow/rules").glob("*.smk")):
        text = path.read_text()
        for name in re.findall(r"^ *(?:rule|checkpoint|use rule \w+ as) (\w+)", text, re.MULTILINE):
            found[name] = "report" if path.stem == "qc" else path.stem
    return found | {"batch_reads": "batches"}


OWNERS = owners()


def planned(folder, config, sheet) -> set:
    """Return what a run would make again: targets, with samples and units."""
    plan = folder.snakemake("-n", *arguments(folder, config, sheet))
    found = set()
    for rule, text in re.findall(
        r"^(?:local)?(?:rule|checkpoint) (\w+):\n((?: .+\n)+)", plan, re.MULTILINE
    ):
        named = dict(re.findall(r"(\w+)=([^,\n]+)", "".join(re.findall("wildcards: .*", text))))
        words = [named[name] for name in ("sample", "unit") if name in named]
        if rule not in TARGETS:
            target = named.get("target", OWNERS[rule])
            found.add(f"{target} {'/'.join(words)}" if words else target)
    return found


@pytest.mark.parametrize("changes", rounds(), ids=lambda changes: changes[0].name)
def test_what_runs_again(finished, changes):
    config, sheet, expected = copy.deepcopy(CONFIG), SHEET, set()
    for change in changes:
        expected |= change.again
        sheet = change.sheet or sheet
        for key, value in change.config.items():
            *section, name = key.split(".")
            (config[section[0]] if section else config)[name] = value
    found = planned(finished, config, sheet)
    assert found == expected


@pytest.mark.parametrize(
    ("names", "again"),
    [
        ("c.fq", with_batches(made_again(["map", "allmap"], ["a"]), "a", "2")),
        ("alt.txt", made_again(["map"])),
        ("regions.bed", made_again(["map", "offtargets", "guides"])),
        ("queries.fa primers.tsv", {*TARGETS} - {"index", "map", "allmap", "guides", "scan"}),
        ("small.fa", made_again({*TARGETS} - {"pairs", "search"})),
    ],
)
def test_another_content(finished, names, again):
    contents = {finished / name: (finished / name).read_text() for name in names.split()}
    for path, text in contents.items():
        path.write_text(text + "\n")
    try:
        assert planned(finished, CONFIG, SHEET) == again
    finally:
        for path, text in contents.items():
            path.write_text(text)


def test_the_same_content(finished):
    for path in [*finished.folder.glob("*.f[aq]"), *finished.folder.glob("*.t*")]:
        path.touch()
    assert planned(finished, CONFIG, SHEET) == set()
