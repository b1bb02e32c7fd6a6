"""The subcommands of `bwarp`, grouped by purpose. This module imports nothing slow."""

import os
import sys
from typing import NamedTuple


class Subcommand(NamedTuple):
    """A module of `bwarp.cli` with `parse_options` and `main`, and its one-line description."""

    module: str
    does: str

    @property
    def program(self) -> str:
        """The name of the program in scripts/, without its ending."""
        return self.module.rpartition(".")[2]


GROUPS: dict[str, dict[str, Subcommand]] = {
    "Index a genome": {
        "index": Subcommand("commands.index_reference", "build the FM-index of a genome"),
    },
    "Map reads": {
        "map": Subcommand("commands.map_reads", "map reads and write SAM, BAM, CRAM or PAF"),
        "fq2bam": Subcommand(
            "commands.fq2bam", "map FASTQ to BAM or CRAM, with the options of Parabricks"
        ),
        "merge": Subcommand("commands.merge_alignments", "merge the sorted BAM files of a sample"),
        "map-insert-size": Subcommand(
            "steps.estimate_map_insert_size", "estimate the insert size of pairs mapped in parts"
        ),
    },
    "Find every match": {
        "seeds": Subcommand("commands.find_seeds", "find every hit of k-mers, with mismatches"),
        "offtargets": Subcommand(
            "commands.find_offtargets", "find every site of CRISPR guides, with bulges and scores"
        ),
        "primers": Subcommand(
            "commands.find_products", "find the products of primer pairs: in-silico PCR"
        ),
        "guides": Subcommand("commands.list_guides", "list CRISPR guides, and rank them"),
        "allmap": Subcommand(
            "commands.find_alignments", "find every alignment of reads with few edits"
        ),
        "mems": Subcommand("commands.find_mems", "find maximal exact matches, as MUMmer does"),
        "scan": Subcommand(
            "commands.scan_composition", "find windows with the base composition of a query"
        ),
    },
    "Align": {
        "pairs": Subcommand("commands.align_pairs", "align query i to reference i, with CIGAR"),
        "search": Subcommand(
            "commands.search_database", "find the best hits of queries in a database"
        ),
        "search-index": Subcommand(
            "commands.index_database", "write a database to a folder that search maps"
        ),
    },
    "Simulate data": {
        "simulate-genome": Subcommand(
            "commands.simulate_genome", "simulate a genome with repeats and gaps"
        ),
        "simulate-reads": Subcommand(
            "commands.simulate_reads", "simulate reads, with the truth in their names"
        ),
    },
    "Check this machine": {
        "doctor": Subcommand("commands.doctor", "report which engine runs and what to install"),
        "compile": Subcommand(
            "commands.compile_programs",
            "compile all programs now instead of at first use",
        ),
    },
    "Run allmap step by step, with files between the steps": {
        "batch-reads": Subcommand("steps.batch_reads", "convert FASTQ to batches of packed reads"),
        "seed-reads": Subcommand("steps.seed_reads", "search the parts of the reads in an index"),
        "locate-seeds": Subcommand("steps.locate_seeds", "look up the positions of the hits"),
        "filter-candidates": Subcommand(
            "steps.filter_candidates", "drop candidates that cannot align"
        ),
        "extend-candidates": Subcommand(
            "steps.extend_candidates", "verify candidates and write loci"
        ),
        "allmap-insert-size": Subcommand(
            "steps.estimate_allmap_insert_size", "estimate the insert size from the first batches"
        ),
        "write-alignments": Subcommand("steps.write_alignments", "write loci as BAM, TSV or PAF"),
        "merge-loci": Subcommand("steps.merge_loci", "merge the files of all batches"),
    },
    "Search on many machines, one part of the queries each": {
        "cut-queries": Subcommand("steps.cut_queries", "cut queries into parts, one file each"),
        "merge-tables": Subcommand("steps.merge_tables", "merge the tables of all parts"),
    },
    "Report on results": {
        "count-correct": Subcommand(
            "reports.count_correct", "count simulated reads that are mapped correctly"
        ),
        "count-steps": Subcommand(
            "reports.count_steps", "tabulate counts and time of each allmap step"
        ),
        "draw-timeline": Subcommand("reports.draw_timeline", "draw the timeline of a run"),
        "draw-report": Subcommand(
            "reports.draw_report", "write the report on mapped reads, and sections for MultiQC"
        ),
        "preview-table": Subcommand(
            "reports.preview_table", "write the first rows of a table as a web page"
        ),
        "report-offtargets": Subcommand(
            "reports.report_offtargets", "write tables of off-targets as a web page"
        ),
        "write-manifest": Subcommand(
            "reports.write_manifest", "write checksums, versions and parameters as JSON"
        ),
    },
}

SUBCOMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}

_OF_PROGRAM = {command.program: name for name, command in SUBCOMMANDS.items()}


def subcommand_name() -> str | None:
    """Return the subcommand that this process runs, or None if it is another program."""
    typed = os.path.basename(sys.argv[0])
    if typed.startswith("bwarp "):
        return typed.removeprefix("bwarp ")
    return _OF_PROGRAM.get(typed.removesuffix(".py"))
