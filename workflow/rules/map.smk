# Reads to sorted BAM: every unit of a sample is mapped by itself and has a read group of its own.

UNITS = read_units()
SAMPLES = list(dict.fromkeys(sample for sample, _ in UNITS))

# Samples of the demo's reads, whose names tell where they are from.
SIMULATED = [
    sample for (sample, _), row in UNITS.items() if [row.get("fq1"), row.get("fq2")] == DEMO_READS
]

MAPPED = expand(
    "results/map/{sample}.{ending}", sample=SAMPLES, ending=["bam", "bam.bai", "stats.json"]
)

for sample in SAMPLES:
    RESULTS[f"results/map/{sample}.bam"] = f"the reads of {sample}, mapped"
    RESULTS[f"results/map/{sample}.stats.json"] = "what became of them"


rule map_reads:
    input:
        index=INDEX,
        reads=reads_of,
        regions=config["map"].get("regions", []),
    output:
        bam=temp("results/map/units/{sample}/{unit}.bam"),
        bai=temp("results/map/units/{sample}/{unit}.bam.bai"),
        stats=temp("results/map/units/{sample}/{unit}.stats.json"),
    log:
        "logs/map_reads/{sample}/{unit}.log",
    benchmark:
        "logs/map_reads/{sample}/{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=map_memory_mb,
        backend=config["backend"],
    params:
        program=program("map_reads.py"),
        gpus=gpus_given,
        sharing=sharing_flags,
        code=code("map_reads.py"),
        reads=read_files,
        options=map_options,
    shell:
        "python {params.program:q} --index {input.index:q} {params.reads:q} --sort"
        " {params.options:q} -o {output.bam:q} --stats {output.stats:q} --threads {threads}"
        " --backend {resources.backend} {params.sharing:q} 2> {log:q}"


rule merge_alignments:
    input:
        units=units_of(".bam"),
        stats=units_of(".stats.json"),
    output:
        bam="results/map/{sample}.bam",
        bai="results/map/{sample}.bam.bai",
        stats="results/map/{sample}.stats.json",
    log:
        "logs/merge_alignments/{sample}.log",
    wildcard_constraints:
        sample="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 4
    params:
        program=program("merge_alignments.py"),
        code=code("merge_alignments.py"),
        options=["--mark-duplicates"] if config["map"]["mark_duplicates"] else [],
    shell:
        "python {params.program:q} {input.units:q} -o {output.bam:q} {params.options:q}"
        " --threads {threads} 2> {log:q}"


rule map:
    input:
        of_samples(MAPPED),
