# What the user named to be searched, and the index of it; what targets make of that.
from pathlib import Path

from snakemake.io import flag
from snakemake.path_modifier import PATH_MODIFIER_FLAG

from bwarp.index.alt_list import alt_list_beside

# Targets with a table, and how its name ends.
TABLES = {
    "seeds": ".tsv",
    "offtargets": ".tsv",
    "primers": ".tsv",
    "mems": ".mums",
    "scan": ".tsv",
    "pairs": ".tsv",
    "search": ".tsv",
}


def as_named(path):
    """An input that the user named: only what is made here goes under the prefix of a module."""
    if path in (DEMO_GENOME, *DEMO_READS):
        return path
    path = workflow.modifier.path_modifier.apply_default_storage(path)
    return flag(path, PATH_MODIFIER_FLAG)


def alt_list(reference):
    """The list of ALT contigs beside a reference, or none."""
    beside = alt_list_beside(reference)
    return [as_named(str(beside))] if beside else []


def file_of(name, key):
    """An input function: the file that a key of a section names."""

    def path(wildcards):
        return as_named(section(name)[key])

    return path


def annotation_of(wildcards):
    """The features that off-targets are annotated by, where the section names a file of them."""
    path = section("offtargets").get("annotation")
    return [as_named(path)] if path else []


def reverse_for(name, needs):
    """An input function: what is made once the index has its reverse BWT, where `needs(section)`.

    Nothing else waits for that, and no search at which the index is has to be run again.
    """

    def table(wildcards):
        return [ancient(WITH_REVERSE)] if needs(section(name)) else []

    return table


def result_of(name, ending):
    """The result of a section, which has the name of its queries."""
    key = {"offtargets": "guides", "primers": "pairs"}.get(name, "queries")
    queries = config.get(name, {}).get(key, "missing_section")
    return f"results/{name}/{stem(queries)}{ending}"


def stem(path):
    """The name of a sequence file without its folder and endings."""
    name = Path(path).name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] or name


REFERENCE = stem(config["reference"])
INDEX = f"results/index/{REFERENCE}"
WITH_REVERSE = f"{INDEX}.with_reverse.txt"

# What the index is made of: results depend on that, and not on how the index is stored. So rules
# search an `ancient` index, and have these files as inputs: one that is made again, with other
# rates of sampling, makes no search run again.
GENOME = [as_named(config["reference"]), *alt_list(config["reference"])]
