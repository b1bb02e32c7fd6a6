# The demo in config/config.yaml: a genome with repeats, and reads that carry their origin in their
# names.


rule simulate_genome:
    output:
        genome=DEMO_GENOME,
    log:
        "logs/simulate_genome.log",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("simulate_genome.py"),
        code=code("simulate_genome.py"),
    shell:
        "python {params.program:q} -o {output.genome:q} --length 1000000 --contigs 3 --seed 1"
        " 2> {log:q}"


rule simulate_reads:
    input:
        genome=DEMO_GENOME,
    output:
        first=DEMO_READS[0],
        second=DEMO_READS[1],
    log:
        "logs/simulate_reads.log",
    conda:
        CPU_ENVIRONMENT
    params:
        program=program("simulate_reads.py"),
        code=code("simulate_reads.py"),
    shell:
        "python {params.program:q} --reference {input.genome:q} -1 {output.first:q}"
        " -2 {output.second:q} --pairs 5000 --read-length 150 --seed 1 2> {log:q}"
