"""Snakemake wrapper for bwarp index."""

__author__ = "The bwarp developers"
__license__ = "MIT"

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
# The sizes of the parts of the index are a table on standard output.
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

shell(
    "bwarp index --threads {snakemake.threads} {extra}"
    " -o {snakemake.output[0]:q} {snakemake.input[0]:q} {log}"
)
