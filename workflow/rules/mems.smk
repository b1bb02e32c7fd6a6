# Maximal exact matches between the queries and the reference, as MUMmer writes them.

RESULTS[result_of("mems", ".mums")] = "the maximal exact matches, in MUMmer's format"


rule find_mems:
    input:
        index=INDEX,
        with_reverse=reverse_for("mems", lambda settings: settings["kind"] != "maxmatch"),
        queries=file_of("mems", "queries"),
    output:
        matches=result_of("mems", ".mums"),
    log:
        "logs/find_mems.log",
    benchmark:
        "logs/find_mems.benchmark.tsv"
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
        sharing=sharing_flags,
        code=code("find_mems.py"),
        options=options_of("mems", "queries"),
    shell:
        "python {params.program:q} --index {input.index:q} --queries {input.queries:q}"
        " -o {output.matches:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} {params.sharing:q} 2> {log:q}"


rule mems:
    input:
        RESAMPLED,
        result_of("mems", ".mums"),
        "results/qc/previews/mems.html",
