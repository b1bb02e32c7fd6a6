"""Snakemake's report of the inputs of the rule that this is the script of."""

import json
import subprocess
import sys
import tempfile

with open(snakemake.log[0], "w") as log, tempfile.NamedTemporaryFile("w", suffix=".json") as config:
    json.dump(snakemake.config, config)
    config.flush()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *snakemake.input]
        + ["--snakefile", snakemake.params.snakefile, "--configfile", config.name]
        + ["--report", snakemake.output.report, "--workflow-profile", "none", "--cores", "1"]
        # The run that this is a step of holds the lock.
        + ["--nolock", "--quiet", "all"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        check=False,
    )
sys.exit(done.returncode)
