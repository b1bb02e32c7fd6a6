# Every site of CRISPR guides in the reference, with mismatches and bulges, and scores.

RESULTS[result_of("offtargets", ".tsv")] = "every site of the guides"
RESULTS[result_of("offtargets", ".guides.tsv")] = "sites and specificities of every guide"

# Files besides the guides.
OFFTARGET_FILES = ("annotation", "variants", "populations", "genomes", "alignments")

# With variants, also those that were not searched.
OFFTARGET_TABLES = [".tsv", ".guides.tsv"]
if config.get("offtargets", {}).get("variants"):
    OFFTARGET_TABLES.append(".unsearched.tsv")
    RESULTS[result_of("offtargets", ".unsearched.tsv")] = "variants that were not searched"

# Other formats lack the columns of the page.
OFFTARGET_PAGES = []
if config.get("offtargets", {}).get("format", "auto") in ("auto", "tsv"):
    OFFTARGET_PAGES = [result_of("offtargets", ".html")]
    RESULTS[OFFTARGET_PAGES[0]] = "guides by rank, with their worst sites"


rule find_offtargets:
    input:
        index=INDEX,
        guides=file_of("offtargets", "guides"),
        annotation=files_of("offtargets", "annotation"),
        variants=files_of("offtargets", "variants"),
        populations=files_of("offtargets", "populations"),
        genomes=files_of("offtargets", "genomes"),
        alignments=files_of("offtargets", "alignments"),
    output:
        tables=[found_in("offtargets", ending) for ending in OFFTARGET_TABLES],
    log:
        search_log("offtargets", "find_offtargets", ".log"),
    benchmark:
        search_log("offtargets", "find_offtargets", ".benchmark.tsv")
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
        options=options_of(
            "offtargets", "guides", "parts", "report_sites", "report_link", *OFFTARGET_FILES
        ),
        files=flags_of_files(*OFFTARGET_FILES),
        part=part_of_guides,
    shell:
        "python {params.program:q} --index {input.index:q} --guides {input.guides:q}"
        " -o {output.tables[0]:q} {params.options:q} {params.files:q} {params.part:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule report_offtargets:
    input:
        table=result_of("offtargets", ".tsv"),
        guides=result_of("offtargets", ".guides.tsv"),
    output:
        page=report(
            result_of("offtargets", ".html"),
            caption="../report/offtargets.rst",
            category="Tables",
            labels={"target": "offtargets: guides and their worst sites"},
        ),
    log:
        "logs/report_offtargets.log",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("report_offtargets.py"),
        code=code("report_offtargets.py"),
        options=report_flags,
    shell:
        "python {params.program:q} {input.table:q} -o {output.page:q} {params.options:q} 2> {log:q}"


rule offtargets:
    input:
        RESAMPLED,
        [result_of("offtargets", ending) for ending in OFFTARGET_TABLES],
        OFFTARGET_PAGES,
        "results/qc/previews/offtargets.html",
