# One rule a benchmark. Every job takes all cores, so that it runs alone.


rule peers:
    output:
        "peers.jsonl",
    log:
        "logs/peers.txt",
    threads: workflow.cores
    params:
        command=[sys.executable, Path(workflow.basedir) / "peers.py"],
    shell:
        "{params.command:q} -o {output:q} > {log:q} 2>&1"


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
            benchmark.program,
        output:
            benchmark.results,
        log:
            f"logs/{name}.txt",
        benchmark:
            f"times/{name}.tsv"
        threads: workflow.cores
        params:
            command=[sys.executable, *benchmark.command(DATA, config["small"])],
            measured=last_change(benchmark.measures),
        shell:
            "{params.command:q} -o {output:q} > {log:q} 2>&1" " && touch {output:q}"
