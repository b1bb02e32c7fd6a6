# Every site of CRISPR guides in the reference, with mismatches and bulges, and scores.

RESULTS[result_of("offtargets", ".tsv")] = "every site of the guides"
RESULTS[result_of("offtargets", ".guides.tsv")] = "sites and specificities of every guide"


rule find_offtargets:
    input:
        index=INDEX,
        guides=file_of("offtargets", "guides"),
        annotation=annotation_of,
        variants=variants_of,
    output:
        table=result_of("offtargets", ".tsv"),
        guides=result_of("offtargets", ".guides.tsv"),
    log:
        "logs/find_offtargets.log",
    benchmark:
        "logs/find_offtargets.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        backend=config["backend"],
    params:
        program=program("find_offtargets.py"),
        gpus=gpus_given,
        code=code("find_offtargets.py"),
        options=options_of("offtargets", "guides", "annotation", "variants"),
        annotation=annotation_flags,
        variants=variants_flags,
    shell:
        "python {params.program:q} --index {input.index:q} --guides {input.guides:q}"
        " -o {output.table:q} {params.options:q} {params.annotation:q} {params.variants:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule offtargets:
    input:
        RESAMPLED,
        result_of("offtargets", ".tsv"),
        result_of("offtargets", ".guides.tsv"),
        "results/qc/previews/offtargets.html",
