# Map reads to sorted BAM: every unit of a sample is mapped separately and has its own read group.

from bwarp.checks.check_files import CheckFiles

UNITS = read_units()
UNITS_OF = {}
for sample, unit in UNITS:
    UNITS_OF.setdefault(sample, []).append((sample, unit))
SAMPLES = list(UNITS_OF)

# Samples with reads of the demo, whose names contain their origin.
SIMULATED = [
    sample
    for (sample, _), row in UNITS.items()
    if [row.get("fq1"), row.get("fq2")] == DEMO_READS and config["map"]["output"] == "bam"
]

# The files of a sample: BAM or CRAM, and its index.
MAP_FORMAT = config["map"]["output"]
MAP_INDEX = {"bam": "bam.bai", "cram": "cram.crai"}[MAP_FORMAT]

# The counts of duplicates, if they are marked. MultiQC takes the sample from the name of the file.
METRICS = "results/map/{sample}.dedup.txt" if config["map"]["mark_duplicates"] else None

# The files of samtools and mosdepth about a sample, if wanted.
CHECKS = []
if config["map"]["qc"]:
    of_sample = CheckFiles("results/map/qc", "{sample}.bam", config["map"].get("qc_regions"))
    CHECKS = list(map(str, of_sample.paths))

MAPPED = expand(
    "results/map/{sample}.{ending}", sample=SAMPLES, ending=[MAP_FORMAT, MAP_INDEX, "stats.json"]
)
MAPPED += expand(METRICS, sample=SAMPLES) if METRICS else []
MAPPED += expand(CHECKS, sample=SAMPLES)

for sample in SAMPLES:
    RESULTS[f"results/map/{sample}.{MAP_FORMAT}"] = f"the reads of {sample}, mapped"
    RESULTS[f"results/map/{sample}.stats.json"] = "their statistics"
    if METRICS:
        RESULTS[METRICS.format(sample=sample)] = "counts of their duplicates"
    for path in CHECKS:
        RESULTS[path.format(sample=sample)] = "counts in the format of samtools or mosdepth"


include: "common/map_parts.smk"


rule map_reads:
    input:
        index=INDEX,
        reads=reads_of,
        regions=config["map"].get("regions", []),
        alt=alt_names(),
    output:
        **timeline_of("results/map/timelines/{sample}/{unit}/all.json"),
        bam=file_of_unit("results/map/units/{sample}/{unit}.bam"),
        bai=file_of_unit("results/map/units/{sample}/{unit}.bam.bai"),
        stats=file_of_unit("results/map/units/{sample}/{unit}.stats.json"),
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
        runtime=map_minutes,
        backend=config["backend"],
    params:
        program=program("map_reads.py"),
        gpus=gpus_given,
        sharing=sharing_flags,
        code=code("map_reads.py"),
        reads=read_files,
        order=reads_in_order,
        options=map_options,
        timeline=timeline_flags,
    shell:
        "python {params.program:q} --index {input.index:q} {params.reads:q} --sort"
        " {params.options:q} -o {output.bam:q} --stats {output.stats:q} --threads {threads}"
        " --backend {resources.backend} {params.sharing:q} {params.timeline:q} 2> {log:q}"


# For a unit that is split: the reads in packed pieces.
rule cut_reads:
    input:
        reads=reads_of,
    output:
        pieces=temp(directory("results/map/pieces/{sample}/{unit}")),
    log:
        "logs/cut_reads/{sample}/{unit}.log",
    benchmark:
        "logs/cut_reads/{sample}/{unit}.benchmark.tsv"
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
        size=piece_size,
    shell:
        "python {params.program:q} {params.reads:q} -o {output.pieces:q}"
        " --batch-size {params.size} --threads {threads} 2> {log:q}"


# For pairs, once for all parts.
rule estimate_map_insert_size:
    input:
        index=INDEX,
        reads=rules.cut_reads.output.pieces,
    output:
        size=temp("results/map/parts/{sample}/{unit}/insert_size.json"),
    log:
        "logs/estimate_map_insert_size/{sample}/{unit}.log",
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        CPU_ENVIRONMENT
    threads: 4
    resources:
        mem_mb=search_memory_mb,
    params:
        program=program("estimate_map_insert_size.py"),
        code=code("estimate_map_insert_size.py"),
        options=alignment_flags,
    shell:
        "python {params.program:q} --index {input.index:q} --batches {input.reads:q}"
        " -o {output.size:q} {params.options:q} --threads {threads} 2> {log:q}"


use rule map_reads as map_part with:
    input:
        index=INDEX,
        reads=rules.cut_reads.output.pieces,
        regions=config["map"].get("regions", []),
        alt=alt_names(),
        insert_size=measured_insert_size,
    output:
        **timeline_of("results/map/timelines/{sample}/{unit}/{part}-of-{parts}.json"),
        bam=file_of_unit("results/map/parts/{sample}/{unit}/{part}-of-{parts}.bam"),
        bai=file_of_unit("results/map/parts/{sample}/{unit}/{part}-of-{parts}.bam.bai"),
        stats=file_of_unit("results/map/parts/{sample}/{unit}/{part}-of-{parts}.stats.json"),
    log:
        "logs/map_part/{sample}/{unit}/{part}-of-{parts}.log",
    benchmark:
        "logs/map_part/{sample}/{unit}/{part}-of-{parts}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
        part="[0-9]+",
        parts="[0-9]+",
    params:
        reads=part_flags,


rule merge_alignments:
    input:
        units=parts_of(".bam"),
        # A file that no job needs is not copied to a storage, and the job that makes it fails.
        indexes=parts_of(".bam.bai") if STORAGE else [],
        stats=parts_of(".stats.json"),
        index=[INDEX] if MAP_FORMAT == "cram" else [],
        reference=[as_named(config["reference"])] if MAP_FORMAT == "cram" else [],
        qc_regions=[config["map"]["qc_regions"]] if "qc_regions" in config["map"] else [],
    output:
        **{"metrics": METRICS} if METRICS else {},
        **{"checks": CHECKS} if CHECKS else {},
        alignments=f"results/map/{{sample}}.{MAP_FORMAT}",
        index=f"results/map/{{sample}}.{MAP_INDEX}",
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
        options=merging_flags,
        cram=cram_flags,
        metrics=metrics_flags,
        checks=check_flags,
        names=unit_names,
    shell:
        "python {params.program:q} {input.units:q} -o {output.alignments:q} {params.options:q}"
        " {params.cram:q} {params.metrics:q} {params.checks:q}"
        " {params.names:q} --threads {threads} 2> {log:q}"


rule draw_timeline:
    input:
        timeline="results/map/timelines/{sample}/{unit}/{part}.json",
    output:
        picture=report(
            "results/map/timelines/{sample}/{unit}/{part}.svg",
            caption="../report/timeline.rst",
            category="Timelines",
            labels=timeline_labels,
        ),
    log:
        "logs/draw_timeline/{sample}/{unit}/{part}.log",
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
        part="all|[0-9]+-of-[0-9]+",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("draw_timeline.py"),
        code=code("draw_timeline.py"),
        title="{sample}, {unit}",
    shell:
        "python {params.program:q} {input.timeline:q} -o {output.picture:q}"
        " --title {params.title:q} 2> {log:q}"


rule map:
    input:
        RESAMPLED,
        of_samples(MAPPED),
        timelines(),
