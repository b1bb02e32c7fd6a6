# One rule per benchmark. Each job takes all cores, so that it runs alone.


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


# If a program has nothing to measure, for example without real data, its results are an empty file.
# A program that takes too long is stopped with all its processes.
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
            [HERE[benchmark.after].results] if benchmark.after in HERE else [],
        output:
            benchmark.results,
        log:
            f"logs/{name}.txt",
        benchmark:
            f"times/{name}.tsv"
        threads: workflow.cores
        resources:
            limit=int(config["limit"]),
        params:
            command=[sys.executable, *benchmark.command(DATA, config["small"])],
            measured=last_change(benchmark.measures),
        shell:
            # timeout has its own process group, so Ctrl-C is passed on.
            "timeout {resources.limit} {params.command:q} -o {output:q} > {log:q} 2>&1 & job=$!;"
            " trap 'kill $job' INT TERM; code=0; wait $job || code=$?;"
            " if [ $code = 124 ]; then echo stopped after {resources.limit} seconds >> {log:q}; fi;"
            " if [ $code != 0 ]; then exit $code; fi; touch {output:q}"
