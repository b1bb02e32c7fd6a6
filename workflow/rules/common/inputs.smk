# Inputs that the user names, their index, and the names of results.
import json
import os
from pathlib import Path

from bwarp_configuration import listed

from bwarp.index.alt_contigs import alt_list_beside
from bwarp.index.parameters import choose_parameters

# Targets with a table, and the extension of the table.
TABLES = {
    "seeds": ".tsv",
    "offtargets": ".tsv",
    "guides": ".tsv",
    "primers": ".tsv",
    "mems": ".mums",
    "scan": ".tsv",
    "pairs": ".tsv",
    "search": ".tsv",
}


def as_named(path):
    """Return an input that the user named; only files made here get the prefix of a module.

    Snakemake does not add it to local files, or to files of a storage that a rule names.
    """
    if path in (DEMO_GENOME, *DEMO_READS):
        return path
    if STORAGE:
        return getattr(storage, STORAGE)(os.path.join(STORED_IN, os.path.normpath(path)))
    return local(path)


def alt_list(reference):
    """Return the list of ALT contigs next to a reference, or none."""
    beside = alt_list_beside(seen_here(reference))
    return [as_named(str(Path(reference).with_name(beside.name)))] if beside else []


def alt_names():
    """Return the file of ALT contigs in the section map, or none."""
    path = config["map"].get("alt", "none")
    return [as_named(path)] if os.path.isfile(seen_here(path)) else []


def file_of(name, key):
    """Return an input function: the file in a key of a section."""

    def path(wildcards):
        return as_named(section(name)[key])

    return path


def files_in_order(name, *keys):
    """Return a function for params: the files in keys of a section, like `reads_in_order`."""

    def paths(wildcards):
        return [section(name)[key] for key in keys]

    return paths


def files_of(name, *keys):
    """Return an input function: the files in keys of a section that may be missing or lists."""

    def paths(wildcards):
        return [as_named(path) for key in keys for path in listed(section(name).get(key))]

    return paths


def reverse_for(name, needs):
    """Return an input function: the mark that the index has its reverse BWT, if `needs(section)`.

    An index in chunks is built with it, see `chunk_flags`.
    Other jobs do not wait for it, and finished searches do not run again. A storage does not notice
    when a job adds to a folder, so an index in a storage has the reverse BWT from the start.
    """

    def table(wildcards):
        settings = section(name)
        in_chunks = "chunk_bases" in settings
        return [WITH_REVERSE] if needs(settings) and not in_chunks and not STORAGE else []

    return table


def query_key(name):
    """Return the key of the queries in a section."""
    return {"offtargets": "guides", "guides": "bed", "primers": "pairs"}.get(name, "queries")


def result_of(name, ending):
    """Return the result of a section, named after its queries."""
    queries = config.get(name, {}).get(query_key(name), "missing_section")
    return f"results/{name}/{stem(queries)}{ending}"


def stem(path):
    """Return the name of a sequence file without folder and extensions."""
    name = Path(path).name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] or name


REFERENCE = stem(config["reference"])
INDEX = f"results/index/{REFERENCE}"
WITH_REVERSE = f"{INDEX}.with_reverse.txt"


def index_for(name):
    """Return an input function: the index that a section searches, which may be in chunks."""

    def index(wildcards):
        bases = section(name).get("chunk_bases")
        return f"{INDEX}.chunks-{bases}" if bases else INDEX

    return index


def chunk_flags(wildcards):
    """Return the flags of an index in chunks; with the reverse BWT if seeds with mismatches need
    it.
    """
    seeds = config.get("seeds", {})
    needed = seeds.get("chunk_bases") == int(wildcards.bases) and seeds["mismatches"] > 0
    reverse = ["--with-reverse"] if needed else []
    return [*flags(config["index"]), "--chunk-bases", wildcards.bases, *reverse]


def sampling_flags(wildcards, input):
    """Return the sampling rates of the index; in a storage, also the flag for its reverse BWT.

    Parameters that depend on inputs are not compared with those of an earlier run: see
    `resample_index`.
    """
    return [*flags(config["index"]), *(["--with-reverse"] if STORAGE else [])]


def reverse_flag(wildcards, input):
    """Return --with-reverse if the index has its reverse BWT."""
    return ["--with-reverse"] if os.path.exists(f"{input.index}.with_reverse.txt") else []


def stored_sampling(index):
    """Return the sampling rates and genome length of the existing index, or nothing."""
    try:
        stored = json.loads(Path(index, "index.json").read_text())
        keys = ("occ_rate", "sa_rate", "prefix_length", "text_length")
        return [int(stored[key]) for key in keys]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def is_sampled_otherwise(index):
    """Return whether the index exists with sampling rates other than the configured ones."""
    stored = stored_sampling(index)
    if not stored or not Path(index, ".snakemake_timestamp").exists():
        return False
    wanted = choose_parameters(stored[3], **config["index"])
    return stored[:3] != [wanted.occ_rate, wanted.sa_rate, wanted.prefix_length]
