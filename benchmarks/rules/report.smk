# Draw the results into one page; if some benchmarks failed, draw those of the others.

DRAW = [sys.executable, Path(workflow.basedir) / "report.py", "."]
# Lines from small data are not shown with those in git.
DRAW += ["--alone"] if config["small"] else []
for kind, price in config["price_an_hour"].items():
    DRAW += [f"--{kind}-price", price]


rule report:
    input:
        [benchmark.results for benchmark in HERE.values()],
        "peers.jsonl",
    output:
        "report.html",
    log:
        "logs/report.txt",
    params:
        command=DRAW,
    shell:
        "{params.command:q} -o {output:q} > {log:q} 2>&1"


onsuccess:
    print(f"The report is {Path('report.html').resolve()}")


onerror:
    shell("{DRAW:q} -o report.html")
