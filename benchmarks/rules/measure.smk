# One rule a benchmark. Every job takes all cores, so that it runs alone.


rule peers:
    output:
        "peers.jsonl",
    log:
        "logs/peers.txt",
    threads: workflow.cores
    params:
        program=Path(workflow.basedir) / "peers.py",
    shell:
        "{sys.executable:q} {params.program:q} -o {output:q} > {log:q} 2>&1"


def options_of(benchmark):
    sizes = "--small" if config["small"] else benchmark.options
    return shlex.split(f"{benchmark.data.format(**DATA)} {sizes}")


# Where a program has nothing to measure, as without real data, its results are an empty file.
for name, benchmark in HERE.items():

    rule:
        name:
            f"measure_{name}"
        input:
            [
                path
                for key, path in DATA.items()
                if f"{{{key}}}" in benchmark.data and key != "indexes"
            ],
            program=benchmark.program,
        output:
            benchmark.results,
        log:
            f"logs/{name}.txt",
        benchmark:
            f"times/{name}.tsv"
        threads: workflow.cores
        params:
            options=options_of(benchmark),
            measured=last_change(benchmark.measures),
        shell:
            "{sys.executable:q} {input.program:q} {params.options:q} -o {output:q} > {log:q} 2>&1"
            " && touch {output:q}"
