# Queries that are cut into parts, each of which is searched by a job of its own: the names of files.


def query_parts(name):
    """Into how many parts the queries of a section are cut."""
    return config.get(name, {}).get("parts", 1)


# The targets whose queries are cut.
CUT_TARGETS = [name for name in ("seeds", "mems", "scan", "search") if query_parts(name) > 1]


def queries_to_search(name):
    """An input function: the queries of a section, or the folder of their parts."""
    if name not in CUT_TARGETS:
        return file_of(name, "queries")
    return f"results/{name}/parts/queries-{query_parts(name)}"


def query_file(wildcards, input):
    """The queries that a job searches."""
    part = wildcards.get("part")
    return f"{input.queries}/{part}.fa" if part else input.queries


def found_in(name, ending):
    """What a search writes: the result, or that of a part."""
    if name not in CUT_TARGETS:
        return result_of(name, ending)
    return temp(f"results/{name}/parts/{{part}}-of-{query_parts(name)}{ending}")


def search_log(name, program, ending):
    """A file below logs/ of a search, or of that of a part."""
    if name not in CUT_TARGETS:
        return f"logs/{program}{ending}"
    return f"logs/{program}/{{part}}-of-{query_parts(name)}{ending}"


def queries_to_cut(wildcards):
    """The file that is cut."""
    return as_named(section(wildcards.target)["queries"])


def cutting_flags(wildcards):
    """What the queries are cut for, and what says which letters they may have."""
    words, settings = ["--for", wildcards.target], section(wildcards.target)
    if wildcards.target == "search":
        words += flags_for(settings, "matrix", "match")
    return words


def tables_of_parts(wildcards):
    """The tables that a table of a target is merged of, in order."""
    name = wildcards.target
    ending = wildcards.file.removeprefix(stem(section(name)["queries"]))
    n_parts = query_parts(name)
    return [f"results/{name}/parts/{part}-of-{n_parts}{ending}" for part in range(1, n_parts + 1)]
