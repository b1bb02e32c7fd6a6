# Find every locus of reads with few edits by a chain of steps, each of which takes a batch of reads
# from one file to the next. On a cluster, the steps of a batch are one job (`group`), and many
# batches are searched at once. On one machine with one GPU, the steps of a batch run at once,
# connected by pipes. On other machines, steps of several batches run at once: one computes while
# another starts. The output is identical to what find_alignments.py writes for a unit.

from bwarp_pipes import SHARES, sorting_flags

from bwarp.options.mapping import LOCI_ALIGNED, LOCI_SEARCHED, SCORES

# Placeholder defaults without an allmap section.
ALLMAP = config.get("allmap", {"format": "bam", "report": "all", "seed_mismatches": "auto"})
ALLMAP_FORMAT = ALLMAP["format"]

# If only loci near the best are wanted, few edits are allowed first, and all of them in a second
# round for the reads that need it.
ALLMAP_ROUNDS = (1,) if ALLMAP["report"] == "all" else (1, 2)

# The cores for pipes between steps, or 0, and the steps that they connect.
CORES_IN_PIPES = cores_for_pipes()
IN_PIPES = list(SHARES) if CORES_IN_PIPES else []
if IN_PIPES and not are_loci_read_once(ALLMAP, ALLMAP_ROUNDS):
    IN_PIPES.remove("write_alignments")

# With pipes, programs replace their shells. If a step fails, Snakemake kills the shells of the
# others, but not the programs that they started, which would wait for their pipes forever.
EXEC = "exec " if IN_PIPES else ""

# The files next to every file of loci, besides its counts; a merged one has an index as well.
ALLMAP_TABLES = ["over.tsv", "skipped.tsv"]
ALLMAP_OTHERS = [*ALLMAP_TABLES, *(["bam.bai"] if ALLMAP_FORMAT == "bam" else [])]

ALLMAPPED = expand(
    "results/allmap/{sample}.{ending}",
    sample=SAMPLES,
    ending=[ALLMAP_FORMAT, "stats.json", "steps.html", *ALLMAP_OTHERS],
)

for sample in SAMPLES:
    RESULTS[f"results/allmap/{sample}.{ALLMAP_FORMAT}"] = f"all loci of the reads of {sample}"
    RESULTS[f"results/allmap/{sample}.steps.html"] = "what was searched and dropped, step by step"

if isinstance(ALLMAP.get("gaps"), int) and isinstance(ALLMAP.get("edits"), int):
    if ALLMAP["gaps"] > ALLMAP["edits"]:
        message = f"is greater than edits: write at most {ALLMAP['edits']}"
        refuse([Problem("the configuration", None, "allmap.gaps", message)])

for key in SCORES:
    if key in ALLMAP and ALLMAP["extension"] == "edits":
        message = "requires extension: semiglobal or local"
        refuse([Problem("the configuration", None, f"allmap.{key}", message)])


wildcard_constraints:
    batch="[0-9]+",
    round="[12]",


checkpoint batch_reads:
    input:
        reads=reads_of,
    output:
        batches=directory("results/allmap/batches/{sample}/{unit}"),
    log:
        "logs/batch_reads/{sample}/{unit}.log",
    benchmark:
        "logs/batch_reads/{sample}/{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 4
    resources:
        mem_mb=chunk_memory_mb,
        runtime=read_minutes,
    params:
        program=program("batch_reads.py"),
        code=code("batch_reads.py"),
        reads=read_files,
        order=reads_in_order,
        size=batch_size_flags,
    shell:
        "python {params.program:q} {params.reads:q} -o {output.batches:q}"
        " {params.size:q} --threads {threads} 2> {log:q}"


rule seed_reads:
    input:
        index=INDEX,
        with_reverse=reverse_for(
            "allmap", lambda settings: settings["seed_mismatches"] not in ("auto", 0)
        ),
        reads=batch_of,
        first_round=first_round,
    output:
        seeds=passed_on(
            "results/allmap/units/{sample}/{unit}/{batch}.{round}.seeds", to="locate_seeds"
        ),
    log:
        "logs/seed_reads/{sample}/{unit}/{batch}.{round}.log",
    benchmark:
        "logs/seed_reads/{sample}/{unit}/{batch}.{round}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    group:
        group_of_batch
    conda:
        environment
    threads: step_threads("seed_reads")
    resources:
        gpu=gpus,
        mem_mb=search_memory_mb,
        runtime=batch_minutes,
        backend=config["backend"],
    params:
        start=EXEC,
        program=program("seed_reads.py"),
        gpus=gpus_given,
        code=code("seed_reads.py"),
        options=locus_limits,
        after=after_flags,
    shell:
        "{params.start}python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " {params.after:q} {params.options:q} -o {output.seeds:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule locate_seeds:
    input:
        index=INDEX,
        seeds=rules.seed_reads.output.seeds,
    output:
        hits=passed_on(
            "results/allmap/units/{sample}/{unit}/{batch}.{round}.hits", to="filter_candidates"
        ),
    log:
        "logs/locate_seeds/{sample}/{unit}/{batch}.{round}.log",
    benchmark:
        "logs/locate_seeds/{sample}/{unit}/{batch}.{round}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    group:
        group_of_batch
    conda:
        CPU_ENVIRONMENT
    threads: step_threads("locate_seeds")
    resources:
        mem_mb=search_memory_mb,
        runtime=batch_minutes,
    params:
        start=EXEC,
        program=program("locate_seeds.py"),
        code=code("locate_seeds.py"),
    shell:
        "{params.start}python {params.program:q} --index {input.index:q} --seeds {input.seeds:q}"
        " -o {output.hits:q} --threads {threads} 2> {log:q}"


rule filter_candidates:
    input:
        index=INDEX,
        reads=batch_of,
        hits=rules.locate_seeds.output.hits,
    output:
        candidates=passed_on(
            "results/allmap/units/{sample}/{unit}/{batch}.{round}.candidates",
            to="extend_candidates",
        ),
    log:
        "logs/filter_candidates/{sample}/{unit}/{batch}.{round}.log",
    benchmark:
        "logs/filter_candidates/{sample}/{unit}/{batch}.{round}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    group:
        group_of_batch
    conda:
        environment
    threads: step_threads("filter_candidates")
    resources:
        gpu=gpus_after_seeding,
        mem_mb=search_memory_mb,
        runtime=batch_minutes,
        backend=config["backend"],
    params:
        start=EXEC,
        program=program("filter_candidates.py"),
        gpus=gpus_shared,
        code=code("filter_candidates.py"),
        options=lambda wildcards: flags_for(section("allmap"), "filter"),
    shell:
        "{params.start}python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --hits {input.hits:q} {params.options:q} -o {output.candidates:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


rule extend_candidates:
    input:
        index=INDEX,
        reads=batch_of,
        candidates=to_verify,
    output:
        loci=passed_on(
            "results/allmap/units/{sample}/{unit}/{batch}.{round}.loci", to="write_alignments"
        ),
    log:
        "logs/extend_candidates/{sample}/{unit}/{batch}.{round}.log",
    benchmark:
        "logs/extend_candidates/{sample}/{unit}/{batch}.{round}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    group:
        group_of_batch
    conda:
        environment
    threads: step_threads("extend_candidates")
    resources:
        gpu=gpus_after_seeding,
        mem_mb=search_memory_mb,
        runtime=batch_minutes,
        backend=config["backend"],
    params:
        start=EXEC,
        program=program("extend_candidates.py"),
        gpus=gpus_shared,
        code=code("extend_candidates.py"),
        options=extension_flags,
    shell:
        "{params.start}python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --candidates {input.candidates:q} -o {output.loci:q} {params.options:q}"
        " --threads {threads} --backend {resources.backend} 2> {log:q}"


rule estimate_allmap_insert_size:
    input:
        index=INDEX,
        reads=first_batches("results/allmap/batches/{sample}/{unit}/{batch}.reads"),
        loci=first_batches("results/allmap/units/{sample}/{unit}/{batch}.1.loci"),
    output:
        size=temp("results/allmap/units/{sample}/{unit}/insert_size.json"),
    log:
        "logs/estimate_allmap_insert_size/{sample}/{unit}.log",
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    resources:
        mem_mb=search_memory_mb,
    params:
        program=program("estimate_allmap_insert_size.py"),
        code=code("estimate_allmap_insert_size.py"),
        options=orientation_flags,
    shell:
        "python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --loci {input.loci:q} -o {output.size:q} {params.options:q} 2> {log:q}"


rule write_alignments:
    input:
        index=INDEX,
        reads=batch_of,
        loci=rounds_of,
        insert_size=estimated_insert_size,
    output:
        loci=temp(f"results/allmap/units/{{sample}}/{{unit}}/{{batch}}.{ALLMAP_FORMAT}"),
        stats=temp("results/allmap/units/{sample}/{unit}/{batch}.stats.json"),
        others=temp(
            [f"results/allmap/units/{{sample}}/{{unit}}/{{batch}}.{e}" for e in ALLMAP_TABLES]
        ),
    log:
        "logs/write_alignments/{sample}/{unit}/{batch}.log",
    benchmark:
        "logs/write_alignments/{sample}/{unit}/{batch}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    group:
        group_of_writing
    conda:
        CPU_ENVIRONMENT
    threads: step_threads("write_alignments")
    resources:
        mem_mb=map_memory_mb,
        runtime=batch_minutes,
    params:
        start=EXEC,
        program=program("write_alignments.py"),
        code=code("write_alignments.py"),
        options=locus_flags,
        insert_size=estimated_insert_size_flags,
        sort_memory=sorting_flags() if "write_alignments" in IN_PIPES else [],
    shell:
        "{params.start}python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --loci {input.loci:q} -o {output.loci:q} --stats {output.stats:q}"
        " {params.insert_size:q} {params.options:q} {params.sort_memory:q} --threads {threads}"
        " 2> {log:q}"


# While a job waits for a checkpoint, Snakemake does not compare its inputs with those of an earlier
# run; without this file it would miss a new unit of a sample.
rule list_units:
    output:
        units=temp("results/allmap/units/{sample}/units.txt"),
    log:
        "logs/list_units/{sample}.log",
    wildcard_constraints:
        sample="[^/]+",
    localrule: True
    conda:
        CPU_ENVIRONMENT
    params:
        units=units_in_order,
    shell:
        "printf '%s\\n' {params.units:q} > {output.units:q} 2> {log:q}"


rule merge_loci:
    input:
        units=rules.list_units.output.units,
        batches=batches(ALLMAP_FORMAT),
        tables=batches("stats.json", *ALLMAP_TABLES),
    output:
        loci=f"results/allmap/{{sample}}.{ALLMAP_FORMAT}",
        stats="results/allmap/{sample}.stats.json",
        others=[f"results/allmap/{{sample}}.{e}" for e in ALLMAP_OTHERS],
    log:
        "logs/merge_loci/{sample}.log",
    benchmark:
        "logs/merge_loci/{sample}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        runtime=merging_minutes,
    params:
        program=program("merge_loci.py"),
        code=code("merge_loci.py"),
    shell:
        "python {params.program:q} {input.batches:q} -o {output.loci:q}"
        " --threads {threads} 2> {log:q}"


rule count_steps:
    input:
        stats="results/allmap/{sample}.stats.json",
    output:
        table="results/allmap/{sample}.steps.tsv",
        page=report(
            "results/allmap/{sample}.steps.html",
            caption="../report/allmap.rst",
            category="Loci",
            labels={"sample": "{sample}"},
        ),
    log:
        "logs/count_steps/{sample}.log",
    wildcard_constraints:
        sample="[^/]+",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("count_steps.py"),
        code=code("count_steps.py"),
        times=times_of_steps,
    shell:
        "python {params.program:q} {input.stats:q} -o {output.table:q} --page {output.page:q}"
        " --times {params.times:q} 2> {log:q}"


rule allmap:
    input:
        RESAMPLED,
        of_samples(ALLMAPPED),
