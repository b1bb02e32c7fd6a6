# Reports: plots, MultiQC, previews of tables, and Snakemake's report of all of them.

import json

# The contents of the report: results of the target all, if they can be made.
MAPPING_REPORT = ["results/qc/plots", "results/qc/multiqc.html"] if REPORT_TOOLS and SAMPLES else []
REPORTED = [*MAPPING_REPORT, *timelines(), f"{INDEX}.txt", *SEEDS[1:]]
REPORT = ["results/report.html"] if REPORT_TOOLS and IS_MAIN and CHECKOUT else []

RESULTS["results/qc/multiqc.html"] = "MultiQC: mapping, qualities, insert sizes, index"
RESULTS["results/report.html"] = "the report: plots, tables, steps and their times"


rule count_correct:
    input:
        bam="results/map/{sample}.bam",
    output:
        truth="results/qc/truth/{sample}.json",
    log:
        "logs/count_correct/{sample}.log",
    wildcard_constraints:
        sample="[^/]+",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("count_correct.py"),
        code=code("count_correct.py"),
    shell:
        "python {params.program:q} {input.bam:q} -o {output.truth:q} 2> {log:q}"


rule draw_report:
    input:
        statistics=expand("results/map/{sample}.stats.json", sample=SAMPLES),
        truth=expand("results/qc/truth/{sample}.json", sample=SIMULATED),
        sizes=f"{INDEX}.txt",
    output:
        plots=report(
            directory("results/qc/plots"),
            patterns=["{plot}.svg"],
            caption="../report/plots.rst",
            category="Mapping",
            labels=plot_labels,
        ),
    log:
        "logs/draw_report.log",
    conda:
        REPORT_ENVIRONMENT
    params:
        program=program("draw_report.py"),
        code=code("draw_report.py"),
        order=SAMPLES,
    shell:
        "python {params.program:q} --statistics {input.statistics:q} --truth {input.truth:q}"
        " --index-sizes {input.sizes:q} -o {output.plots:q} 2> {log:q}"


rule multiqc:
    input:
        plots="results/qc/plots",
        metrics=expand(METRICS, sample=SAMPLES) if METRICS else [],
        checks=expand(CHECKS, sample=SAMPLES),
    output:
        html=report(
            "results/qc/multiqc.html",
            caption="../report/multiqc.rst",
            category="Mapping",
            labels={"plot": "All of these, interactive (MultiQC)"},
        ),
    log:
        "logs/multiqc.log",
    conda:
        REPORT_ENVIRONMENT
    params:
        config=multiqc_settings,
        # The files of --qc have more than these summaries of samtools stats.
        ignored=["--ignore", "*.samtools_stats.txt"] if CHECKS else [],
    shell:
        "multiqc --force --no-ansi --no-version-check --no-data-dir --config {params.config:q}"
        " {params.ignored:q} --filename {output.html:q} {input.plots:q} {input.metrics:q}"
        " {input.checks:q} 2> {log:q}"


# A manifest of the results of a target; made on request only, because it reads all files again.
rule write_manifest:
    input:
        inputs=manifest_inputs,
        outputs=manifest_results,
    output:
        manifest="results/{target}/manifest.json",
    log:
        "logs/write_manifest/{target}.log",
    wildcard_constraints:
        target="|".join(MANIFESTS),
    conda:
        CPU_ENVIRONMENT
    threads: 4
    params:
        program=program("write_manifest.py"),
        code=code("write_manifest.py"),
        parameters=manifest_parameters,
    shell:
        "python {params.program:q} --inputs {input.inputs:q} --outputs {input.outputs:q}"
        " --parameters {params.parameters:q} -o {output.manifest:q} --threads {threads} 2> {log:q}"


rule manifest:
    input:
        "results/map/manifest.json",


rule preview_table:
    input:
        table=previewed_table,
    output:
        page=report(
            "results/qc/previews/{target}.html",
            caption="../report/tables.rst",
            category="Tables",
            labels={"target": "{target}"},
        ),
    log:
        "logs/preview_table/{target}.log",
    wildcard_constraints:
        target="|".join(TABLES),
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("preview_table.py"),
        code=code("preview_table.py"),
        header=header_option,
    shell:
        "python {params.program:q} {input.table:q} -o {output.page:q} {params.header} 2> {log:q}"


# Snakemake's report covers what has been made, here the targets of this workflow. A workflow that
# uses this one as a module has its own report.
if IS_MAIN and CHECKOUT:

    rule report:
        input:
            REPORTED,
        output:
            report="results/report.html",
        log:
            "logs/report.log",
        conda:
            REPORT_ENVIRONMENT
        params:
            program=os.path.relpath(CHECKOUT / "workflow" / "scripts" / "write_report.py"),
            snakefile=os.path.relpath(workflow.main_snakefile),
            # Not compared with an earlier run: a setting changes the report through its results.
            configuration=lambda wildcards, input: json.dumps(config),
        # Not `script:`, which fails if the path of Python contains a blank.
        shell:
            "python {params.program:q} {params.snakefile:q} {params.configuration:q}"
            " {output.report:q} {input:q} > {log:q} 2>&1"


rule qc:
    input:
        of_samples(MAPPING_REPORT),
