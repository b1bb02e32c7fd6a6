# Find every window of the reference whose base counts are similar to those of a query.

RESULTS[result_of("scan", ".tsv")] = (
    "the alignments of the queries with windows of their base composition"
    if config.get("scan", {}).get("align")
    else "the windows with the base composition of a query"
)


rule scan_composition:
    input:
        reference=as_named(config["reference"]),
        queries=queries_to_search("scan"),
    output:
        table=found_in("scan", ".tsv"),
    log:
        search_log("scan", "scan_composition", ".log"),
    benchmark:
        search_log("scan", "scan_composition", ".benchmark.tsv")
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=scan_memory_mb,
        backend=config["backend"],
        algorithm=algorithm_of("scan"),
    params:
        program=program("scan_composition.py"),
        gpus=gpus_given,
        code=code("scan_composition.py"),
        order=files_in_order("scan", "queries"),
        queries=query_file,
        options=options_of("scan", "queries", "parts", "algorithm"),
    shell:
        "python {params.program:q} --reference {input.reference:q} --queries {params.queries:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} --algorithm {resources.algorithm} 2> {log:q}"


rule scan:
    input:
        result_of("scan", ".tsv"),
        "results/qc/previews/scan.html",
