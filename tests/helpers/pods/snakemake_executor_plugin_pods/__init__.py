"""A substitute for Kubernetes: each job is a process in an empty folder in $PODS.

As in a pod, it only finds files that Snakemake provides: those of the clone that git tracks, and
those in a storage.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecMode

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=True,
    job_deploy_sources=True,
    pass_default_storage_provider_args=True,
    pass_default_resources_args=True,
    pass_envvar_declarations_to_cmd=False,
    auto_deploy_default_storage_provider=False,
    init_seconds_before_status_checks=1,
)


class Executor(RemoteExecutor):
    def get_python_executable(self):
        return sys.executable

    def get_exec_mode(self):
        return ExecMode.REMOTE

    def run_job(self, job):
        pod = tempfile.mkdtemp(prefix=f"{job.name}-", dir=os.environ["PODS"])
        log = Path(f"{pod}.log")
        command = ["bash", "-c", self.format_job_exec(job)]
        with open(log, "wb") as said:
            process = subprocess.Popen(command, cwd=pod, stdout=said, stderr=said)
        aux = {"process": process, "log": str(log)}
        self.report_job_submission(SubmittedJobInfo(job=job, external_jobid=pod, aux=aux))

    async def check_active_jobs(self, active_jobs):
        for job in active_jobs:
            code = job.aux["process"].poll()
            if code is None:
                yield job
            elif code == 0:
                self.report_job_success(job)
            else:
                log = job.aux["log"]
                self.report_job_error(job, msg=Path(log).read_text(), aux_logs=[log])

    def cancel_jobs(self, active_jobs):
        for job in active_jobs:
            job.aux["process"].kill()
