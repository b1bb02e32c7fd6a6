# Find every hit of the queries, or of their k-mers, in the reference, with mismatches.

RESULTS[result_of("seeds", ".tsv")] = "every hit of the k-mers of the queries"

# The hits, and the k-mers that have too many hits or were not searched.
SEED_TABLES = [result_of("seeds", ending) for ending in (".tsv", ".over.tsv", ".skipped.tsv")]

# The results for the target all: none without a section, and the demo's reads only in the demo, so
# that other genomes are not searched for the queries in config/config.yaml.
SEEDS = [*SEED_TABLES, "results/qc/previews/seeds.html"]
if "seeds" not in config or (
    config["seeds"]["queries"] in DEMO_READS and config["reference"] != DEMO_GENOME
):
    SEEDS = []


rule find_seeds:
    input:
        index=index_for("seeds"),
        with_reverse=reverse_for("seeds", lambda settings: settings["mismatches"] > 0),
        queries=queries_to_search("seeds"),
    output:
        table=found_in("seeds", ".tsv"),
        over=found_in("seeds", ".over.tsv"),
        skipped=found_in("seeds", ".skipped.tsv"),
    log:
        search_log("seeds", "find_seeds", ".log"),
    benchmark:
        search_log("seeds", "find_seeds", ".benchmark.tsv")
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        backend=config["backend"],
        locate=lambda wildcards: section("seeds")["locate"],
        algorithm=algorithm_of("seeds"),
    params:
        program=program("find_seeds.py"),
        gpus=gpus_given,
        sharing=spreading_flags("seeds"),
        code=code("find_seeds.py"),
        queries=query_file,
        options=seed_options,
    shell:
        "python {params.program:q} --index {input.index:q} --queries {params.queries:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} --locate {resources.locate}"
        " --algorithm {resources.algorithm} {params.sharing:q} 2> {log:q}"


rule seeds:
    input:
        RESAMPLED,
        SEED_TABLES,
        "results/qc/previews/seeds.html",
