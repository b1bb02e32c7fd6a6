# A genome and its index, which several benchmarks share: human chr20, or a simulated one.

SIZE = 200_000 if config["small"] else int(config["genome"])
REAL = None if config["small"] else large_file("chr20.fa")
NAME = REAL.stem if REAL else f"simulated_{SIZE}"
DATA = {
    "genome": f"data/{NAME}.fa",
    "index": f"data/{NAME}.index",
    "indexes": "data/mappers",
}
SCRIPTS = Path(workflow.basedir).parent / "scripts"
SIMULATE = [sys.executable, SCRIPTS / "simulate_genome.py", "--length", SIZE, "--contigs", 4, "-o"]


rule genome:
    output:
        DATA["genome"],
    log:
        "logs/data_genome.txt",
    threads: workflow.cores
    params:
        command=["cp", REAL] if REAL else SIMULATE,
    shell:
        "{params.command:q} {output:q} 2> {log:q}"


rule index:
    input:
        DATA["genome"],
    output:
        directory(DATA["index"]),
    log:
        "logs/data_index.txt",
    threads: workflow.cores
    params:
        command=[sys.executable, SCRIPTS / "index_reference.py"],
    shell:
        "{params.command:q} {input:q} -o {output:q} --with-reverse"
        " --backend cpu --threads {threads} 2> {log:q}"
