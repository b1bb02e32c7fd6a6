# The best hits of each query in a database, by exact Smith-Waterman scores.

RESULTS[result_of("search", ".tsv")] = "the best hits of each query in the database"


rule index_database:
    input:
        database=file_of("search", "database"),
    output:
        folder=directory("results/search/databases/{database}"),
    log:
        "logs/index_database/{database}.log",
    benchmark:
        "logs/index_database/{database}.benchmark.tsv"
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        mem_mb=database_memory_mb,
    params:
        program=program("index_database.py"),
        code=code("index_database.py"),
        options=alphabet_flags,
    shell:
        "python {params.program:q} {input.database:q} -o {output.folder:q} {params.options:q}"
        " --threads {threads} 2> {log:q}"


rule search_database:
    input:
        queries=queries_to_search("search"),
        database=searched_database,
    output:
        table=found_in("search", ".tsv"),
    log:
        search_log("search", "search_database", ".log"),
    benchmark:
        search_log("search", "search_database", ".benchmark.tsv")
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=database_memory_mb,
        backend=config["backend"],
        algorithm=algorithm_of("search"),
    params:
        program=program("search_database.py"),
        gpus=gpus_given,
        sharing=sharing_flags,
        code=code("search_database.py"),
        order=files_in_order("search", "queries", "database"),
        queries=query_file,
        options=options_of("search", "queries", "parts", "prepare", "database", "algorithm"),
    shell:
        "python {params.program:q} --queries {params.queries:q} --database {input.database:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} --algorithm {resources.algorithm}"
        " {params.sharing:q} 2> {log:q}"


rule search:
    input:
        result_of("search", ".tsv"),
        "results/qc/previews/search.html",
