"""Run `snakemake -n ...` as if there were a GPU (yes) or not (no): plan_environments.py yes|no ...

It also prints the conda environment of each planned job.
"""

import sys
from pathlib import Path

from snakemake.cli import main
from snakemake.jobs import Job

sys.path.insert(0, ".")
import bwarp.runtime.backend

here, *words = sys.argv[1:]
bwarp.runtime.backend.may_have_gpu = lambda: here == "yes"
said_before = Job.log_info


def log_info(job, *further, **named):
    said_before(job, *further, **named)
    if job.conda_env_spec:
        environment = Path(job.conda_env_spec.file.get_path_or_uri(secret_free=True))
        environment = environment.resolve(strict=True).relative_to(Path.cwd())
        print(f"\n{job.rule.name}: {environment} gpu={job.resources.get('gpu', 0)}", flush=True)


Job.log_info = log_info
main(["-n", *words])
