# The CRISPR guides of regions of the reference, ranked by their off-targets.

GUIDE_FILES = ("exclude", "annotation", "variants")

# The ending of each table, and its contents.
GUIDE_TABLES = {".tsv": "guides of the regions, best first"}
if config.get("guides", {}).get("nickases"):
    GUIDE_TABLES[".nickases.tsv"] = "pairs of guides for two nickases"
if config.get("guides", {}).get("variants"):
    GUIDE_TABLES[".unsearched.tsv"] = "variants that were not searched"
RESULTS.update({result_of("guides", ending): what for ending, what in GUIDE_TABLES.items()})


rule design_guides:
    input:
        index=INDEX,
        bed=file_of("guides", "bed"),
        exclude=files_of("guides", "exclude"),
        annotation=files_of("guides", "annotation"),
        variants=files_of("guides", "variants"),
    output:
        tables=[result_of("guides", ending) for ending in GUIDE_TABLES],
    log:
        "logs/design_guides.log",
    benchmark:
        "logs/design_guides.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        backend=config["backend"],
    params:
        program=program("list_guides.py"),
        gpus=gpus_given,
        code=code("list_guides.py"),
        options=options_of("guides", "bed", *GUIDE_FILES),
        files=flags_of_files(*GUIDE_FILES),
    shell:
        "python {params.program:q} --index {input.index:q} --bed {input.bed:q} --specificity"
        " -o {output.tables[0]:q} {params.options:q} {params.files:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule guides:
    input:
        RESAMPLED,
        [result_of("guides", ending) for ending in GUIDE_TABLES],
        "results/qc/previews/guides.html",
