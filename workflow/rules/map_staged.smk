# Reads to sorted BAM in stages, a rule each: what `map: {execution: staged}` asks for. The same bytes
# as map_reads gives. The chunk files are removed when they have been read.

if config["backend"] == "cuda":
    message = "staged runs on the CPU; write fused, or backend: auto"
    refuse([Problem("the configuration", None, "map.execution", message)])


rule chunk_reads:
    input:
        reads=reads_of,
    output:
        reads=temp("results/map/units/{sample}/{unit}.reads"),
    log:
        "logs/chunk_reads/{sample}.{unit}.log",
    benchmark:
        "logs/chunk_reads/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 2
    resources:
        mem_mb=chunk_memory_mb,
    params:
        program=program("chunk_reads.py"),
        code=code("chunk_reads.py"),
        reads=read_files,
    shell:
        "python {params.program:q} {params.reads:q} -o {output.reads:q}"
        " --threads {threads} 2> {log:q}"


rule seed_chunks:
    input:
        index=INDEX,
        reads=rules.chunk_reads.output.reads,
    output:
        rows=temp("results/map/units/{sample}/{unit}.rows"),
    log:
        "logs/seed_chunks/{sample}.{unit}.log",
    benchmark:
        "logs/seed_chunks/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        mem_mb=map_memory_mb,
    params:
        program=program("seed_chunks.py"),
        code=code("seed_chunks.py"),
        options=alignment_flags(),
    shell:
        "python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " {params.options:q} -o {output.rows:q} --threads {threads} 2> {log:q}"


rule locate_chunks:
    input:
        index=INDEX,
        rows=rules.seed_chunks.output.rows,
    output:
        candidates=temp("results/map/units/{sample}/{unit}.candidates"),
    log:
        "logs/locate_chunks/{sample}.{unit}.log",
    benchmark:
        "logs/locate_chunks/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        mem_mb=map_memory_mb,
    params:
        program=program("locate_chunks.py"),
        code=code("locate_chunks.py"),
    shell:
        "python {params.program:q} --index {input.index:q} --rows {input.rows:q}"
        " -o {output.candidates:q} --threads {threads} 2> {log:q}"


rule extend_candidates:
    input:
        index=INDEX,
        reads=rules.chunk_reads.output.reads,
        candidates=rules.locate_chunks.output.candidates,
    output:
        hits=temp("results/map/units/{sample}/{unit}.hits"),
    log:
        "logs/extend_candidates/{sample}.{unit}.log",
    benchmark:
        "logs/extend_candidates/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        mem_mb=map_memory_mb,
    params:
        program=program("extend_candidates.py"),
        code=code("extend_candidates.py"),
    shell:
        "python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --candidates {input.candidates:q} -o {output.hits:q} --threads {threads} 2> {log:q}"


rule write_alignments:
    input:
        index=INDEX,
        reads=rules.chunk_reads.output.reads,
        hits=rules.extend_candidates.output.hits,
    output:
        bam=temp("results/map/units/{sample}/{unit}.bam"),
        bai=temp("results/map/units/{sample}/{unit}.bam.bai"),
        stats=temp("results/map/units/{sample}/{unit}.stats.json"),
    log:
        "logs/write_alignments/{sample}.{unit}.log",
    benchmark:
        "logs/write_alignments/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 16
    resources:
        mem_mb=map_memory_mb,
    params:
        program=program("write_alignments.py"),
        code=code("write_alignments.py"),
        options=output_flags,
    shell:
        "python {params.program:q} --index {input.index:q} --reads {input.reads:q}"
        " --hits {input.hits:q} --sort {params.options:q} -o {output.bam:q}"
        " --stats {output.stats:q} --threads {threads} 2> {log:q}"
