# Align query i with reference i: score, position and CIGAR.

RESULTS[result_of("pairs", ".tsv")] = "each query aligned to its reference"


rule align_pairs:
    input:
        references=file_of("pairs", "references"),
        queries=file_of("pairs", "queries"),
    output:
        table=result_of("pairs", ".tsv"),
    log:
        "logs/align_pairs.log",
    benchmark:
        "logs/align_pairs.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        backend=config["backend"],
        algorithm=algorithm_of("pairs"),
    params:
        program=program("align_pairs.py"),
        gpus=gpus_given,
        code=code("align_pairs.py"),
        order=files_in_order("pairs", "references", "queries"),
        options=options_of("pairs", "references", "queries", "algorithm"),
    shell:
        "python {params.program:q} --references {input.references:q} --queries {input.queries:q}"
        " -o {output.table:q} {params.options:q} --threads {threads}"
        " --backend {resources.backend} --algorithm {resources.algorithm} 2> {log:q}"


rule pairs:
    input:
        result_of("pairs", ".tsv"),
        "results/qc/previews/pairs.html",
