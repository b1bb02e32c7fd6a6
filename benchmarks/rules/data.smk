# A genome and its index, which several benchmarks share: human chr20, or a simulated one.

SIZE = 200_000 if config["small"] else int(config["genome"])
REAL = None if config["small"] else large_file("chr20.fa")
NAME = REAL.stem if REAL else f"simulated_{SIZE}"
DATA = {
    "genome": f"data/{NAME}.fa",
    "index": f"data/{NAME}.index",
    "indexes": "data/mappers",
}
BWARP = Path(workflow.basedir).parent / "scripts"


MADE = [sys.executable, BWARP / "simulate_genome.py", "--length", SIZE, "--contigs", 4, "-o"]


rule genome:
    output:
        DATA["genome"],
    params:
        command=["cp", REAL] if REAL else MADE,
    log:
        "logs/genome.txt",
    threads: workflow.cores
    shell:
        "{params.command:q} {output:q} 2> {log:q}"


rule index:
    input:
        DATA["genome"],
    output:
        directory(DATA["index"]),
    log:
        "logs/index.txt",
    threads: workflow.cores
    params:
        program=BWARP / "index_reference.py",
    shell:
        "{sys.executable:q} {params.program:q} {input:q} -o {output:q} --with-reverse"
        " --backend cpu --threads {threads} 2> {log:q}"
