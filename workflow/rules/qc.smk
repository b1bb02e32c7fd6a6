# Reports: the page on mapped reads, the page on the steps, MultiQC, and previews of tables.

# The reports of the target all, if there are samples; MultiQC's only if it is installed.
REPORTS = ["results/report.html", "results/qc/steps.html"] if SAMPLES else []
if SAMPLES and HAS_MULTIQC:
    REPORTS.append("results/qc/multiqc.html")

RESULTS["results/report.html"] = "the report: samples, mapping, depth, qualities"
RESULTS["results/qc/steps.html"] = "candidates, times of the steps, index sizes"
RESULTS["results/qc/multiqc.html"] = "MultiQC: the same plots, interactive"


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


rule report:
    input:
        statistics=of_samples(expand("results/map/{sample}.stats.json", sample=SAMPLES)),
        truth=expand("results/qc/truth/{sample}.json", sample=SIMULATED),
        sizes=f"{INDEX}.txt",
        timelines=timelines(),
        checks=expand(CHECKS, sample=SAMPLES),
    output:
        sections=directory("results/qc/multiqc"),
        steps=report(
            "results/qc/steps.html",
            caption="../report/steps.rst",
            category="Mapping",
            labels={"page": "Steps of mapping"},
        ),
        page=report(
            "results/report.html",
            caption="../report/mapping.rst",
            category="Mapping",
            labels={"page": "Mapped reads"},
        ),
    log:
        "logs/report.log",
    conda:
        REPORT_ENVIRONMENT
    params:
        program=program("draw_report.py"),
        code=code("draw_report.py"),
        order=SAMPLES,
        title=f"Reads mapped to {REFERENCE}",
        times=times_of_mapping,
        checks=lambda _, input: ["--qc", os.path.dirname(input.checks[0])] if CHECKS else [],
    shell:
        "python {params.program:q} --statistics {input.statistics:q} {params.checks:q}"
        " --truth {input.truth:q}"
        " --index-sizes {input.sizes:q} --timelines {input.timelines:q} --times {params.times:q}"
        " --title {params.title:q} -o {output.page:q} --steps {output.steps:q}"
        " --multiqc {output.sections:q} 2> {log:q}"


rule multiqc:
    input:
        sections="results/qc/multiqc",
        metrics=expand(METRICS, sample=SAMPLES) if METRICS else [],
        checks=expand(CHECKS, sample=SAMPLES),
    output:
        html=report(
            "results/qc/multiqc.html",
            caption="../report/multiqc.rst",
            category="Mapping",
            labels={"page": "MultiQC"},
        ),
    log:
        "logs/multiqc.log",
    conda:
        REPORT_ENVIRONMENT
    params:
        config=multiqc_settings,
    shell:
        "multiqc --force --no-ansi --no-version-check --no-data-dir --config {params.config:q}"
        " --filename {output.html:q} {input.sections:q} {input.metrics:q} {input.checks:q} 2> {log:q}"


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


rule qc:
    input:
        of_samples(REPORTS),
