"""The target `map`: units of a sample become one BAM, and the demo tells how right it is."""

import json
import re

import pysam


def test_units_of_a_sample(make_copy):
    copy = make_copy()
    letters = (copy / "small.fa").read_text().split("\n")[1]
    reads = {unit: letters[at : at + 100] for unit, at in (("a", 1000), ("b", 2000))}
    for unit, read in (*reads.items(), ("c", reads["a"])):
        (copy / f"{unit}.fq").write_text(f"@{unit}\n{read}\n+\n{'I' * 100}\n")
    (copy / "units.tsv").write_text(
        "sample\tunit\tfq1\tfq2\n"
        "s.1\ta\ta.fq\t\n"
        "s.1\tb\tb.fq\t\n"
        "s\t1.a\tc.fq\tmates.fq\n"
    )  # fmt: skip
    (copy / "mates.fq").write_text(f"@c\n{reads['b']}\n+\n{'I' * 100}\n")
    (copy / "mine.yaml").write_text("reference: small.fa\nsamples: units.tsv\n")
    copy.snakemake("map", "--configfile", "mine.yaml")
    found = {}
    for sample in ("s", "s.1"):
        with pysam.AlignmentFile(copy / f"results/map/{sample}.bam") as file:
            assert file.check_index()
            found[sample] = [(r.query_name, r.reference_start, r.get_tag("RG")) for r in file]
    assert found == {
        "s": [("c", 1000, "s.1.a"), ("c", 2000, "s.1.a")],
        "s.1": [("a", 1000, "s.1.a"), ("b", 2000, "s.1.b")],
    }
    statistics = json.loads((copy / "results/map/s.1.stats.json").read_text())
    assert (statistics["reads"], statistics["mapped"], list(statistics["units"])) == (
        2,
        2,
        ["a", "b"],
    )
    assert not (copy / "results/map/units/s/1.a.bam").exists()


def test_the_demo_says_how_many_reads_are_right(make_copy):
    said = make_copy().snakemake("map")
    right = re.search(r"Of the demo's 9,798 reads, ([\d,]+) lie where they are from \(.* %\)", said)
    assert int(right[1].replace(",", "")) > 9600
