"""The subcommands of `bwarp`, by what a user wants to do. Nothing heavy is imported here."""

import os
import re
import sys
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A module of `bwarp.cli` with `parse_options` and `main`, and what it is good for."""

    module: str
    does: str

    @property
    def program(self) -> str:
        """The name of the same program in scripts/, without its ending."""
        return self.module.rpartition(".")[2]


GROUPS: dict[str, dict[str, Subcommand]] = {
    "Index a genome": {
        "index": Subcommand("commands.index_reference", "build the FM-index of a genome"),
    },
    "Map reads to it": {
        "map": Subcommand("commands.map_reads", "reads to SAM, BAM or CRAM"),
        "merge": Subcommand("commands.merge_alignments", "sorted BAM files of one sample to one"),
        "map-insert-size": Subcommand(
            "steps.estimate_map_insert_size", "the insert size of pairs that are mapped in parts"
        ),
    },
    "Find all of something": {
        "seeds": Subcommand("commands.find_seeds", "every hit of k-mers, with mismatches"),
        "offtargets": Subcommand(
            "commands.find_offtargets", "every site of CRISPR guides, with bulges and scores"
        ),
        "primers": Subcommand("commands.find_products", "products of primer pairs: in-silico PCR"),
        "guides": Subcommand(
            "commands.list_guides", "CRISPR guides of a sequence, for offtargets to search"
        ),
        "allmap": Subcommand("commands.find_alignments", "every alignment of reads with few edits"),
        "mems": Subcommand("commands.find_mems", "maximal exact matches, as MUMmer finds them"),
        "scan": Subcommand("commands.scan_composition", "windows with a query's base composition"),
    },
    "Align": {
        "pairs": Subcommand("commands.align_pairs", "query i with reference i, with CIGAR"),
        "search": Subcommand("commands.search_database", "the best hits of queries in a database"),
    },
    "Simulate data": {
        "simulate-genome": Subcommand("commands.simulate_genome", "a genome with repeats and gaps"),
        "simulate-reads": Subcommand(
            "commands.simulate_reads", "reads of a genome, with the truth in their names"
        ),
    },
    "Look at this machine": {
        "doctor": Subcommand("commands.doctor", "which engine runs here, and what to install"),
        "compile": Subcommand(
            "commands.compile_programs",
            "compile all programs now, not at their first use",
        ),
    },
    "Do as allmap step by step, each through a file": {
        "batch-reads": Subcommand("steps.batch_reads", "FASTQ to batches of packed reads"),
        "seed-reads": Subcommand("steps.seed_reads", "their parts, searched in an index"),
        "locate-seeds": Subcommand("steps.locate_seeds", "the positions of these"),
        "filter-candidates": Subcommand("steps.filter_candidates", "drop what cannot align there"),
        "extend-candidates": Subcommand("steps.extend_candidates", "verify the others: loci"),
        "allmap-insert-size": Subcommand(
            "steps.estimate_allmap_insert_size", "the insert size of pairs, from the first batches"
        ),
        "write-alignments": Subcommand("steps.write_alignments", "BAM, TSV or PAF of them"),
        "merge-loci": Subcommand("steps.merge_loci", "the files of all batches to one"),
    },
    "Search on many machines, a part of the queries on each": {
        "cut-queries": Subcommand("steps.cut_queries", "queries to parts, a file each"),
        "merge-tables": Subcommand("steps.merge_tables", "the tables of all parts to one"),
    },
    "Report on results": {
        "count-correct": Subcommand(
            "reports.count_correct", "simulated reads that are mapped correctly"
        ),
        "count-steps": Subcommand("reports.count_steps", "what every step of allmap made of reads"),
        "draw-timeline": Subcommand("reports.draw_timeline", "a run's timeline as a picture"),
        "draw-report": Subcommand("reports.draw_report", "plots, and sections for MultiQC"),
        "preview-table": Subcommand("reports.preview_table", "the first rows of a table as a page"),
        "write-manifest": Subcommand(
            "reports.write_manifest", "checksums of files, versions and parameters as JSON"
        ),
    },
}

SUBCOMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

_OF_PROGRAM = {command.program: name for name, command in SUBCOMMANDS.items()}
_PROGRAM = re.compile(rf"(?<![\w/.-])(?:scripts/)?({'|'.join(_OF_PROGRAM)})\.py\b")


def subcommand_name() -> str | None:
    """Which subcommand this process is, by what was typed; None for a program of another kind."""
    typed = os.path.basename(sys.argv[0])
    if typed.startswith("bwarp "):
        return typed.removeprefix("bwarp ")
    return _OF_PROGRAM.get(typed.removesuffix(".py"))


def as_called(text: str) -> str:
    """What is said of programs, as a user types them: `bwarp map` for scripts/map_reads.py.

    For one who called the file, a text stays as it is.
    """
    if not sys.argv[0].startswith("bwarp "):
        return text
    return _PROGRAM.sub(lambda match: f"bwarp {_OF_PROGRAM[match[1]]}", text)
