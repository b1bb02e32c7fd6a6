# Maximal exact matches between the queries and the reference, as MUMmer writes them.

RESULTS[result_of("mems", ".mums")] = "the maximal exact matches, in MUMmer's format"


rule find_mems:
    input:
        index=index_for("mems"),
        with_reverse=reverse_for("mems", lambda settings: settings["kind"] != "maxmatch"),
        queries=queries_to_search("mems"),
    output:
        matches=found_in("mems", ".mums"),
    log:
        search_log("mems", "find_mems", ".log"),
    benchmark:
        search_log("mems", "find_mems", ".benchmark.tsv")
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        backend=config["backend"],
    params:
        program=program("find_mems.py"),
        gpus=gpus_given,
        sharing=spreading_flags("mems"),
        code=code("find_mems.py"),
        queries=query_file,
        options=options_of("mems", "queries", "parts", "chunk_bases"),
    shell:
        "python {params.program:q} --index {input.index:q} --queries {params.queries:q}"
        " -o {output.matches:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} {params.sharing:q} 2> {log:q}"


rule mems:
    input:
        RESAMPLED,
        result_of("mems", ".mums"),
        "results/qc/previews/mems.html",
