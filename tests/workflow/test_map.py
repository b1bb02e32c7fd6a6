"""The target `map`: units of a sample become one BAM, and the demo reports its accuracy."""

import json
import re
import shutil

import pysam
import pytest


@pytest.fixture(scope="module")
def units(make_copy):
    """Make a copy with mapped units of two samples, one of them with pairs."""
    copy = make_copy(forks=True)
    letters = (copy / "small.fa").read_text().split("\n")[1]
    reads = {unit: letters[at : at + 100] for unit, at in (("a", 1000), ("b", 2000))}
    for unit, read in (*reads.items(), ("c", reads["a"]), ("again", reads["a"])):
        (copy / f"{unit}.fq").write_text(f"@{unit}\n{read}\n+\n{'I' * 100}\n")
    (copy / "units.tsv").write_text(
        "sample\tunit\tfq1\tfq2\tplatform\n"
        "s.1\ta\ta.fq\t\tDNBSEQ\n"
        "s.1\tb\tb.fq\t\n"
        "s.1\t2\tagain.fq\t\n"
        "s\t1.a\tc.fq\tmates.fq\n"
        "s\t2\telsewhere.fq\t\n"
    )  # fmt: skip
    # Outside the regions; their first base is the last base of read a.
    (copy / "elsewhere.fq").write_text(f"@d\n{letters[999:1099]}\n+\n{'I' * 100}\n")
    (copy / "mates.fq").write_text(f"@c\n{reads['b']}\n+\n{'I' * 100}\n")
    (copy / "mine.yaml").write_text(
        "reference: small.fa\nsamples: units.tsv\nmap:\n  mark_duplicates: true\n  match: 2\n"
        "  all: true\n  max_secondary: 3\n  soft_clip: true\n  eqx: true\n  regions: r.bed\n"
        "  timeline: true\n  qc: true\n  qc_regions: r.bed\n"
    )
    contig = (copy / "small.fa").read_text().split()[0].removeprefix(">")
    (copy / "r.bed").write_text(f"{contig}\t1099\t2001\n")
    copy.snakemake("map", "--configfile", "mine.yaml")
    return copy


def test_units_of_a_sample(units):
    found = {}
    for sample in ("s", "s.1"):
        with pysam.AlignmentFile(units / f"results/map/{sample}.bam") as file:
            assert file.check_index()
            groups = [tuple(group.values()) for group in file.header.to_dict()["RG"]]
            records = list(file)
            assert {record.cigarstring for record in records} == {"100="}
            found[sample] = [(r.query_name, r.reference_start, r.get_tag("RG")) for r in records]
            duplicates = [record.query_name for record in records if record.is_duplicate]
            assert duplicates == ([] if sample == "s" else ["again"])
        metrics = (units / f"results/map/{sample}.dedup.txt").read_text().splitlines()
        counts = dict(zip(metrics[1].split("\t"), metrics[2].split("\t"), strict=True))
        assert counts["UNPAIRED_READ_DUPLICATES"] == ("0" if sample == "s" else "1")
    assert groups == [
        ("s.1.a", "s.1", "DNBSEQ"), ("s.1.b", "s.1", "ILLUMINA"), ("s.1.2", "s.1", "ILLUMINA")
    ]  # fmt: skip
    assert found == {
        "s": [("c", 1000, "s.1.a"), ("c", 2000, "s.1.a")],
        "s.1": [("a", 1000, "s.1.a"), ("again", 1000, "s.1.2"), ("b", 2000, "s.1.b")],
    }
    statistics = json.loads((units / "results/map/s.1.stats.json").read_text())
    assert (statistics["reads"], statistics["mapped"], list(statistics["units"])) == (
        3,
        3,
        ["a", "b", "2"],
    )
    assert not (units / "results/map/units/s/1.a.bam").exists()
    logs = units / "logs/map_reads"
    made = {str(path.relative_to(logs)) for path in logs.rglob("*.log")}
    assert made == {"s/1.a.log", "s/2.log", "s.1/a.log", "s.1/b.log", "s.1/2.log"}


def test_checks_of_the_files(units):
    for sample in ("s", "s.1"):
        bam = str(units / f"results/map/{sample}.bam")
        checks = units / "results/map/qc"
        assert (checks / f"{sample}.flagstat").read_text() == pysam.flagstat(bam)
        assert (checks / f"{sample}.idxstats").read_text() == pysam.idxstats(bam)
        (line,) = (checks / f"{sample}.mosdepth.summary.txt").read_text().splitlines()[-1:]
        assert line.split("\t")[:2] == ["total_region", "902"]
    targets = ("results/report.html", "results/qc/multiqc.html")
    units.snakemake(*targets, "--configfile", "mine.yaml")
    assert "Duplicates are left out" in (units / "results/report.html").read_text()
    page = (units / "results/qc/multiqc.html").read_text()
    assert "Mosdepth" in page
    assert not re.search(r"\bs(\.1)?\.(stats|idxstats|flagstat)\b", page)


def test_timelines_are_drawn(units):
    picture = (units / "results/map/timelines/s/1.a/all.svg").read_text()
    assert "<title>s, 1.a</title>" in picture
    assert "write records, " in picture
    # They are only made on request, and mapped units are not mapped again without them.
    (units / "without.yaml").write_text(
        (units / "mine.yaml").read_text().replace("  timeline: true\n", "")
    )
    planned = units.planned("map", "report", "--configfile", "without.yaml")
    assert not {"map_reads", "draw_timeline"} & set(planned)
    # Units mapped without them are mapped again to make them.
    shutil.rmtree(units / "results/map/timelines/s.1")
    (units / "results/report.html").unlink(missing_ok=True)
    for target in ("map", "report"):
        planned = units.planned(target, "--configfile", "mine.yaml")
        assert (planned.count("map_reads"), planned.count("draw_timeline")) == (3, 3)


@pytest.fixture(scope="module")
def demo(make_copy):
    """Make a copy with all results of the demo."""
    copy = make_copy(forks=True)
    copy.said = copy.snakemake()
    return copy


def test_the_demo_says_how_many_reads_are_correct(demo):
    correct = re.search(
        r"([\d,]+) of the demo's 9,798 reads are mapped correctly \(.* %\)", demo.said
    )
    assert int(correct[1].replace(",", "")) > 9600


def test_a_run_ends_with_a_table_and_where_the_report_is(demo, checkout):
    rows = re.search(r"\nsample +reads +mapped % .*correct %\ndemo +10,000 +(.*)\n\n", demo.said)
    mapped, proper, confident, errors, split, depth, correct = map(float, rows[1].split())
    assert min(mapped, proper, confident, correct) > 90
    assert 0.1 < errors < 2
    assert split < 1
    assert 1 < depth < 2
    page = (checkout / "docs/report.md").read_text()
    assert re.search(r"^```text\n(sample .*?)^```", page, re.MULTILINE | re.DOTALL)[1] in demo.said
    assert "\n  results/report.html  " in demo.said
    assert "RuntimeWarning" not in demo.said


def test_the_front_page_shows_how_a_run_ends(checkout, demo):
    page = (checkout / "README.md").read_text()
    (shown,) = re.findall(r"^```text\n(sample .*?)^```", page, re.MULTILINE | re.DOTALL)
    without_numbers = [re.sub(r"[\d,.]*\d", "#", text) for text in (shown, demo.said)]
    assert without_numbers[0] in without_numbers[1]


def test_nothing_is_left_to_do_for_the_report(demo):
    assert "Nothing to be done" in demo.snakemake()


def test_the_report(demo):
    page = (demo / "results/report.html").read_text()
    assert "<h1>Reads mapped to demo</h1>" in page
    assert re.findall("<h2>(.*?)</h2>", page) == [
        "Mapped reads and duplicates", "Depth and breadth", "Insert size", "Mapping quality"
    ]  # fmt: skip
    row = re.search(r"^demo +10,000 .*$", demo.said, re.MULTILINE)[0].split()
    assert set(row) <= set(re.findall("<td>(.*?)</td>", page))
    steps = (demo / "results/qc/steps.html").read_text()
    assert "Where candidates went" in steps
    seconds = re.findall(r"<title>(\w+): ([\d.]+) s, 1 job</title>", steps)
    assert [step for step, _ in seconds] == ["index_reference", "map_reads"]
    assert all(0 < float(taken) < 30 for _, taken in seconds)


def test_every_file_is_explained_beside_the_results(demo):
    page = (demo / "results/README.md").read_text()
    patterns = []
    for cell in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", cell)
        # .bam.bai is next to map/<sample>, and another name is in the same folder.
        start, folder = re.match(r"[^>]*>?", first)[0], first.rpartition("/")[0]
        patterns += [first, *(start + n if n[0] == "." else f"{folder}/{n}" for n in others)]
    known = [re.sub(r"<\w+>", "[^/]+", re.escape(pattern)) for pattern in patterns]
    files = [
        p.relative_to(demo / "results")
        for p in (demo / "results").rglob("*")
        if p.is_file() and p.name[0] != "."
    ]
    for file in map(str, files):
        found = any(re.fullmatch(p + ".*" if p.endswith("/") else p, file) for p in known)
        assert found or file == "README.md", file


def test_the_manifest(demo):
    demo.snakemake("manifest")
    made = json.loads((demo / "results/map/manifest.json").read_text())
    assert made["parameters"]["configuration"]["map"]["mode"] == "local"
    assert made["parameters"]["units"][0]["sample"] == "demo"
    assert [file["path"] for file in made["outputs"]] == [
        f"results/map/demo.{ending}" for ending in ("bam", "bam.bai", "stats.json")
    ]
    assert {"resources/demo/demo.fa.gz", "resources/demo/reads_1.fq.gz"} < {
        file["path"] for file in made["inputs"]
    }


def test_multiqc_has_the_sections_of_bwarp(demo):
    page = (demo / "results/qc/multiqc.html").read_text()
    for title in ("Mapping quality", "Depth", "Insert size"):
        assert f"{title}\n" in page or f">{title}<" in page, title
    assert not re.search(r'<(script|link)[^>]*(src|href)="http', page)
    assert re.search(r"Software Versions.*bwarp", page, re.DOTALL)
