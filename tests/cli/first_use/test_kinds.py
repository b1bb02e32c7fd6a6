"""The options of a program that determine which functions are compiled before a run."""

import importlib

import pytest

from bwarp.cli.commands import map_reads
from bwarp.cli.first_use.listed_functions import functions_of_kind, functions_of_programs, kind_of
from bwarp.cli.subcommands import SUBCOMMANDS

MAPPED = "map -x index -1 R1.fq"

KINDS = {
    "index genome.fa -o index": "index forward",
    "index genome.fa -o index --with-reverse --verify": "index both verify",
    f"{MAPPED} -o -": "map single local sam",
    f"{MAPPED} -2 R2.fq -o out.bam": "map pairs local bam",
    f"{MAPPED} -p -o out.cram --mode end-to-end": "map pairs end-to-end bam",
    f"{MAPPED} -o out.bam --sort": "map single local sorted",
    f"{MAPPED} -o out.bam --sort --mark-duplicates": "map single local marked",
    f"{MAPPED} -o out.bam --sort --qc checks": "map single local sorted checked",
    "allmap -x index -1 R1.fq -2 R2.fq -o out.bam -e 4": "allmap pairs edits bam",
    "allmap -x index -1 R1.fq -p --unpaired -o out.tsv -e 4 --extension local": (
        "allmap single local tsv"
    ),
    "seeds -x index --queries q.fa -o hits.tsv.gz": "seeds exact tsv",
    "seeds -x index --queries q.fa -o hits.bed -v 2": "seeds mismatches bed",
    "seeds -x index --queries q.fa -o hits.tsv --count-only": "seeds exact count",
    "mems -x index --queries q.fa -o q.mums": "mems index mumreference text",
    "mems --reference r.fa --queries q.fa -o q.paf --kind mum": "mems reference mum paf",
    "pairs --references r.fa --queries q.fa -o out.sam --mode global": "pairs global sam",
    "scan --reference r.fa --queries q.fa -o out.tsv --similarity 0.9": "scan",
    "scan --reference r.fa --queries q.fa -o out.bed --similarity 0.9 --align": "scan align",
}


@pytest.mark.parametrize("line", KINDS)
def test_a_run_has_a_kind(line):
    name, *words = line.split()
    program = importlib.import_module(f"bwarp.cli.{SUBCOMMANDS[name].module}")
    assert kind_of(name, program.parse_options().parse_args(words)) == KINDS[line]


def test_fq2bam_runs_map():
    words = ["-x", "i", "-1", "1.fq", "-2", "2.fq", "-o", "o.bam", "--sort", "--mark-duplicates"]
    options = map_reads.parse_options().parse_args(words)
    assert kind_of("fq2bam", options) == "map pairs local marked"


def test_a_kind_needs_some_functions_of_its_program():
    of_all, of_kind = functions_of_programs(["map"]), functions_of_kind("map pairs local sam")
    assert set(of_kind) < set(of_all)
    assert not any(one.function.startswith("bwarp.bam.bgzf") for one in of_kind)


def test_an_unknown_kind_needs_the_functions_of_the_others():
    of_others = {
        one
        for one in functions_of_programs(["map"])
        if any(kind.startswith("map ") and kind != "map further" for kind in one.kinds)
    }
    assert set(functions_of_kind("map quartets")) == of_others < set(functions_of_programs(["map"]))


def test_rare_options_do_not_affect_a_first_use():
    assert set(functions_of_kind("scan")) < set(functions_of_programs(["scan"]))
