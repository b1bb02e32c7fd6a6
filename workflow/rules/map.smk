# Reads to sorted BAM: every unit of a sample is mapped by itself and has a read group of its own.


def read_units():
    """The rows of the sample sheet by sample and unit."""
    sheet = config.get("samples")
    if not isinstance(sheet, str) or not os.path.isfile(sheet):
        return {}
    rows, _ = read_sheet(sheet, Path(sheet).read_bytes(), read_schema("samples"))
    cells = [{"unit": "1", **row.cells} for row in rows]
    return {(row["sample"], row["unit"]): row for row in cells}


UNITS = read_units()
SAMPLES = list(dict.fromkeys(sample for sample, _ in UNITS))

for sample in SAMPLES:
    RESULTS[f"results/map/{sample}.bam"] = f"the reads of {sample}, mapped"
    RESULTS[f"results/map/{sample}.stats.json"] = "what became of them"


def reads_of(wildcards):
    """The one or two files of a unit."""
    row = UNITS[wildcards.sample, wildcards.unit]
    return [row[key] for key in ("fq1", "fq2") if row.get(key)]


def read_options(wildcards):
    """-1 and -2 with the files of a unit, and its read group."""
    flags = [word for pair in zip(("-1", "-2"), reads_of(wildcards)) for word in pair]
    group = rf"@RG\tID:{wildcards.sample}.{wildcards.unit}\tSM:{wildcards.sample}"
    return [*flags, "--read-group", group]


def units_of(ending):
    """An input function: a file of every unit of a sample."""

    def paths(wildcards):
        return [
            f"results/map/units/{sample}/{unit}{ending}"
            for sample, unit in UNITS
            if sample == wildcards.sample
        ]

    return paths


rule map_reads:
    input:
        index=INDEX,
        reads=reads_of,
    output:
        bam=temp("results/map/units/{sample}/{unit}.bam"),
        bai=temp("results/map/units/{sample}/{unit}.bam.bai"),
        stats=temp("results/map/units/{sample}/{unit}.stats.json"),
    log:
        "logs/map_reads/{sample}.{unit}.log",
    benchmark:
        "logs/map_reads/{sample}.{unit}.benchmark.tsv"
    wildcard_constraints:
        sample="[^/]+",
        unit="[^/]+",
    conda:
        ENVIRONMENT
    threads: 16
    resources:
        backend=config["backend"],
    params:
        program=program("map_reads.py"),
        code=code("map_reads.py"),
        options=read_options,
    shell:
        "python {params.program:q} --index {input.index:q} {params.options:q} --sort"
        " -o {output.bam:q} --stats {output.stats:q} --threads {threads}"
        " --backend {resources.backend} 2> {log:q}"


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
        ENVIRONMENT
    threads: 4
    params:
        program=program("merge_alignments.py"),
        code=code("merge_alignments.py"),
    shell:
        "python {params.program:q} {input.units:q} -o {output.bam:q} --threads {threads} 2> {log:q}"


def print_truth():
    """Say how many of the demo's reads lie where they are from: their names tell."""
    from bwarp.mapping.truth import count_right

    for (sample, _), row in UNITS.items():
        bam = f"results/map/{sample}.bam"
        if [row.get("fq1"), row.get("fq2")] == DEMO_READS and os.path.exists(bam):
            counts = count_right(bam)
            print(
                f"Of the demo's {counts.total:,} reads, {sum(counts.right):,} lie where they "
                f"are from ({100 * sum(counts.right) / counts.total:.2f} %)."
            )


rule map:
    input:
        expand(
            "results/map/{sample}.{ending}",
            sample=SAMPLES,
            ending=["bam", "bam.bai", "stats.json"],
        ),
