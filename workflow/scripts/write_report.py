"""Write Snakemake's report of existing files, as a step of the run that makes them.

write_report.py SNAKEFILE CONFIGURATION REPORT FILE...    the configuration is JSON text
"""

import subprocess
import sys
import tempfile

snakefile, configuration, report, *files = sys.argv[1:]
with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
    config.write(configuration)
    config.flush()
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", *files]
        + ["--snakefile", snakefile, "--configfile", config.name]
        + ["--report", report, "--workflow-profile", "none", "--cores", "1"]
        # The surrounding run holds the lock.
        + ["--nolock", "--quiet", "all"],
        stdin=subprocess.DEVNULL,
        check=False,
    )
sys.exit(done.returncode)
