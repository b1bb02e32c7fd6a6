# The FM-index for seeding, matching and mapping.

RESULTS[INDEX] = f"the index of {config['reference']}"
RESULTS[f"{INDEX}.txt"] = "the sizes of its parts"


rule index_reference:
    input:
        reference=as_named(config["reference"]),
        # The list of ALT contigs next to the reference, if there is one, is read automatically.
        alt=alt_list(config["reference"]),
    output:
        index=directory(INDEX),
        table=report(
            f"{INDEX}.txt",
            caption="../report/index.rst",
            category="Index",
            labels={"table": "Parts and their sizes"},
        ),
    log:
        f"logs/index_reference/{REFERENCE}.log",
    benchmark:
        f"logs/index_reference/{REFERENCE}.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=index_memory_mb,
        backend=config["backend"],
    params:
        program=program("index_reference.py"),
        gpus=gpus_given,
        code=code("index_reference.py"),
        options=sampling_flags,
    shell:
        "python {params.program:q} {input.reference:q} -o {output.index:q} {params.options:q}"
        " --threads {threads} --backend {resources.backend} > {output.table:q} 2> {log:q}"


# The folder of the index, with the prefix of a module.
BUILT_INDEX = rules.index_reference.output.index

# Additional results of a target if the index has other sampling rates.
RESAMPLED = [f"{INDEX}.resampled.txt"] if is_sampled_otherwise(BUILT_INDEX) else []


# An existing index with other sampling rates. Results do not depend on the rates, so the index
# keeps its time stamp: no job that searches it waits for this one, or runs again. The folder is
# replaced atomically: each job opens either the old one or the new one, and continues with it.
# Snakemake does not document how to keep the time stamp of a folder. With `ancient`, a run in which
# the rates and something else have changed would not rerun the jobs that the other change affects.
rule resample_index:
    input:
        index=INDEX,
        reference=as_named(config["reference"]),
        alt=alt_list(config["reference"]),
    output:
        table=f"{INDEX}.resampled.txt",
    log:
        f"logs/resample_index/{REFERENCE}.log",
    benchmark:
        f"logs/resample_index/{REFERENCE}.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=index_memory_mb,
        backend=config["backend"],
    params:
        program=program("index_reference.py"),
        gpus=gpus_given,
        stored=stored_sampling(BUILT_INDEX),
        options=flags(config["index"]),
        also=reverse_flag,
    shell:
        "cp -p {input.index:q}/.snakemake_timestamp {output.table:q}.time"
        " && python {params.program:q} {input.reference:q} -o {input.index:q} {params.options:q}"
        " {params.also:q} --threads {threads} --backend {resources.backend}"
        " > {output.table:q} 2> {log:q}"
        " && mv {output.table:q}.time {input.index:q}/.snakemake_timestamp"
        " && cp {output.table:q} {input.index:q}.txt"


# The reverse BWT, for searches with mismatches and for unique matches. It is added to the folder of
# the index, from the packed genome there, without changing files that other jobs read.
rule add_reverse:
    input:
        index=INDEX,
    output:
        table=WITH_REVERSE,
    log:
        f"logs/add_reverse/{REFERENCE}.log",
    benchmark:
        f"logs/add_reverse/{REFERENCE}.benchmark.tsv"
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=index_memory_mb,
        backend=config["backend"],
    params:
        program=program("index_reference.py"),
        gpus=gpus_given,
        code=code("index_reference.py"),
    shell:
        "python {params.program:q} -o {input.index:q} --with-reverse --threads {threads}"
        " --backend {resources.backend} > {output.table:q} 2> {log:q}"


# An index in chunks, for the targets with `chunk_bases`.
rule index_in_chunks:
    input:
        reference=as_named(config["reference"]),
        alt=alt_list(config["reference"]),
    output:
        index=directory(f"{INDEX}.chunks-{{bases}}"),
        table=f"{INDEX}.chunks-{{bases}}.txt",
    log:
        f"logs/index_in_chunks/{REFERENCE}.chunks-{{bases}}.log",
    benchmark:
        f"logs/index_in_chunks/{REFERENCE}.chunks-{{bases}}.benchmark.tsv"
    wildcard_constraints:
        bases="[0-9]+",
    conda:
        environment
    threads: 16
    resources:
        gpu=gpus,
        mem_mb=index_memory_mb,
        backend=config["backend"],
    params:
        program=program("index_reference.py"),
        gpus=gpus_given,
        code=code("index_reference.py"),
        options=chunk_flags,
    shell:
        "python {params.program:q} {input.reference:q} -o {output.index:q} {params.options:q}"
        " --threads {threads} --backend {resources.backend} > {output.table:q} 2> {log:q}"


rule index:
    input:
        INDEX,
        RESAMPLED,
