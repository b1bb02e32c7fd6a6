# Split queries into parts, and merge the results of the parts: for targets with `parts`.

if CUT_TARGETS:

    rule cut_queries:
        input:
            queries=queries_to_cut,
        output:
            parts=temp(directory("results/{target}/parts/queries-{parts}")),
        log:
            "logs/cut_queries/{target}-{parts}.log",
        wildcard_constraints:
            target="|".join(CUT_TARGETS),
            parts="[0-9]+",
        conda:
            CPU_ENVIRONMENT
        threads: 2
        resources:
            mem_mb=cutting_memory_mb,
        params:
            program=program("cut_queries.py"),
            code=code("cut_queries.py"),
            options=cutting_flags,
        shell:
            "python {params.program:q} --queries {input.queries:q} -o {output.parts:q}"
            " --parts {wildcards.parts} {params.options:q} --threads {threads} 2> {log:q}"

    rule merge_tables:
        input:
            parts=tables_of_parts,
        output:
            table="results/{target}/{file}",
        log:
            "logs/merge_tables/{target}/{file}.log",
        wildcard_constraints:
            target="|".join(CUT_TARGETS),
            file="[^/]+",
        conda:
            CPU_ENVIRONMENT
        params:
            program=program("merge_tables.py"),
            code=code("merge_tables.py"),
            options=header_flags,
        shell:
            "python {params.program:q} {input.parts:q} -o {output.table:q} {params.options:q}"
            " 2> {log:q}"
