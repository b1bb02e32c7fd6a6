# Makes `snakemake` work from the top folder; the workflow is in workflow/Snakefile.
include: "workflow/Snakefile"


rule default:
    default_target: True
    input:
        rules.all.input,
