# The best hits of each query in a database, by exact Smith-Waterman scores.

RESULTS[result_of("search", ".tsv")] = "the best hits of each query in the database"


rule search_database:
    input:
        queries=file_of("search", "queries"),
        database=file_of("search", "database"),
    output:
        table=result_of("search", ".tsv"),
    log:
        "logs/search_database.log",
    benchmark:
        "logs/search_database.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        backend=config["backend"],
    params:
        program=program("search_database.py"),
        gpus=gpus_given,
        sharing=sharing_flags,
        code=code("search_database.py"),
        options=options_of("search", "queries", "database"),
    shell:
        "python {params.program:q} --queries {input.queries:q} --database {input.database:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} {params.sharing:q} 2> {log:q}"


rule search:
    input:
        result_of("search", ".tsv"),
        "results/qc/previews/search.html",
