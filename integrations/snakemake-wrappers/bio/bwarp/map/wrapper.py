"""Snakemake wrapper for bwarp map."""

__author__ = "The bwarp developers"
__license__ = "MIT"

import tempfile

from snakemake.shell import shell

SORT_ORDERS = {
    "none": ("coordinate", "queryname"),  # ignored, as in bwa/mem
    "bwarp": ("coordinate",),
    "samtools": ("coordinate", "queryname"),
    "picard": ("coordinate", "queryname"),
    "fgbio": ("coordinate", "queryname"),
}

extra = snakemake.params.get("extra", "")
sorting = snakemake.params.get("sorting", "none")
sort_order = snakemake.params.get("sort_order", "coordinate")
sort_extra = snakemake.params.get("sort_extra", "")
log = snakemake.log_fmt_shell(stdout=False, stderr=True)

reads = snakemake.input.reads
reads = [reads] if isinstance(reads, str) else list(reads)
if len(reads) not in (1, 2):
    raise ValueError(f"input.reads must be one or two files, but there are {len(reads)}.")
if sorting not in SORT_ORDERS:
    raise ValueError(f"params.sorting must be one of {', '.join(SORT_ORDERS)}, not {sorting!r}.")
if sort_order not in SORT_ORDERS[sorting]:
    allowed = " or ".join(SORT_ORDERS[sorting])
    raise ValueError(
        f"params.sort_order must be {allowed} with sorting {sorting!r}, not {sort_order!r}."
    )

files = "-1 {reads[0]:q}" if len(reads) == 1 else "-1 {reads[0]:q} -2 {reads[1]:q}"
reference = snakemake.input.get("ref", "")
with_reference = " --reference {reference:q}" if reference else ""
mapping = (
    f"bwarp map --threads {{snakemake.threads}} {{extra}} --index {{snakemake.input.idx:q}} {files}"
)

with tempfile.TemporaryDirectory() as folder:
    if sorting == "none":
        command = f"{mapping}{with_reference} -o {{snakemake.output[0]:q}}"
    elif sorting == "bwarp":
        command = f"{mapping}{with_reference} --sort {{sort_extra}} -o {{snakemake.output[0]:q}}"
    elif sorting == "samtools":
        by_name = " -n" if sort_order == "queryname" else ""
        command = (
            f"{mapping} -o - | samtools sort --threads {{snakemake.threads}} -T {{folder:q}}/part"
            f"{by_name}{with_reference} {{sort_extra}} -o {{snakemake.output[0]:q}} -"
        )
    elif sorting == "picard":
        command = (
            f"{mapping} -o - | picard SortSam {{sort_extra}} --INPUT /dev/stdin"
            " --OUTPUT {snakemake.output[0]:q} --SORT_ORDER {sort_order} --TMP_DIR {folder:q}"
        )
    else:
        command = (
            f"{mapping} -o - | fgbio --tmp-dir {{folder:q}} SortBam {{sort_extra}}"
            " --input /dev/stdin --output {snakemake.output[0]:q} --sort-order {fgbio_order}"
        )
        fgbio_order = sort_order.capitalize()
    shell(f"({command}) {{log}}")
