# Queries that are split into parts, each searched by a separate job, and the database of `search`.


def query_parts(name):
    """Return the number of parts of the queries of a section."""
    return config.get(name, {}).get("parts", 1)


# The targets whose queries are split.
CUT_TARGETS = [
    name for name in ("seeds", "offtargets", "mems", "scan", "search") if query_parts(name) > 1
]


def queries_to_search(name):
    """Return an input function: the queries of a section, or the folder of their parts."""
    if name not in CUT_TARGETS:
        return file_of(name, query_key(name))
    return f"results/{name}/parts/queries-{query_parts(name)}"


def query_file(wildcards, input):
    """Return the queries that a job searches."""
    part = wildcards.get("part")
    return f"{input.queries}/{part}.fa" if part else input.queries


def part_of_guides(wildcards):
    """Return the option that selects a part of the guides; every job reads all guides."""
    part = wildcards.get("part")
    return ["--part", f"{part}/{query_parts('offtargets')}"] if part else []


def found_in(name, ending):
    """Return the output of a search: the result, or that of a part."""
    if name not in CUT_TARGETS:
        return result_of(name, ending)
    return temp(f"results/{name}/parts/{{part}}-of-{query_parts(name)}{ending}")


def search_log(name, program, ending):
    """Return a file below logs/ for a search, or for a part."""
    if name not in CUT_TARGETS:
        return f"logs/{program}{ending}"
    return f"logs/{program}/{{part}}-of-{query_parts(name)}{ending}"


def queries_to_cut(wildcards):
    """Return the file to split."""
    return as_named(section(wildcards.target)[query_key(wildcards.target)])


def searched_database(wildcards):
    """Return the database, or the folder that `index_database` writes."""
    settings = section("search")
    if settings["prepare"]:
        return f"results/search/databases/{stem(settings['database'])}"
    return as_named(settings["database"])


def alphabet_flags(wildcards):
    """Return the options that determine the alphabet of `search`."""
    return flags_for(section("search"), "matrix", "match")


def cutting_flags(wildcards):
    """Return the purpose of the split, and the options that determine the alphabet."""
    alphabet = alphabet_flags(wildcards) if wildcards.target == "search" else []
    return ["--for", wildcards.target, *alphabet]


def tables_of_parts(wildcards):
    """Return the tables that are merged into a table of a target, in order."""
    name = wildcards.target
    ending = wildcards.file.removeprefix(stem(section(name)[query_key(name)]))
    n_parts = query_parts(name)
    # The variants that are not searched are the same in all parts.
    merged = 1 if ending == ".unsearched.tsv" else n_parts
    return [f"results/{name}/parts/{part}-of-{n_parts}{ending}" for part in range(1, merged + 1)]


def header_flags(wildcards):
    """Return the flag for tables without a header: BED, which has the same name."""
    settings = section(wildcards.target)
    is_bed = settings.get("format") == "bed" and not wildcards.file.endswith(".guides.tsv")
    return ["--no-header"] if is_bed else []
