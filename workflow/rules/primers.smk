# The products of primer pairs in the reference: in-silico PCR.

RESULTS[result_of("primers", ".tsv")] = "products of the primer pairs"
RESULTS[result_of("primers", ".pairs.tsv")] = "sites and products of every pair"


rule find_products:
    input:
        index=INDEX,
        with_reverse=reverse_for("primers", lambda settings: settings["mismatches"] > 0),
        pairs=file_of("primers", "pairs"),
    output:
        table=result_of("primers", ".tsv"),
        pairs=result_of("primers", ".pairs.tsv"),
    log:
        "logs/find_products.log",
    benchmark:
        "logs/find_products.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        backend=config["backend"],
    params:
        program=program("find_products.py"),
        gpus=gpus_given,
        code=code("find_products.py"),
        options=options_of("primers", "pairs"),
    shell:
        "python {params.program:q} --index {input.index:q} --pairs {input.pairs:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule primers:
    input:
        RESAMPLED,
        result_of("primers", ".tsv"),
        result_of("primers", ".pairs.tsv"),
        "results/qc/previews/primers.html",
