process BWARP_INDEX {
    tag "${fasta}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${workflow.containerEngine == 'singularity' && !task.ext.singularity_pull_docker_container
        ? 'https://depot.galaxyproject.org/singularity/bwarp:0.1.0--pyhdfd78af_0'
        : 'biocontainers/bwarp:0.1.0--pyhdfd78af_0'}"

    input:
    tuple val(meta), path(fasta)

    output:
    tuple val(meta), path("bwarp"), emit: index
    path "versions.yml"           , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args   = task.ext.args ?: ''
    def prefix = task.ext.prefix ?: "${fasta.baseName}"
    """
    mkdir bwarp
    bwarp index \\
        ${args} \\
        --threads ${task.cpus} \\
        -o bwarp/${prefix}.index \\
        ${fasta}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bwarp: \$(bwarp --version | sed 's/^bwarp //')
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${fasta.baseName}"
    """
    mkdir -p bwarp/${prefix}.index
    touch bwarp/${prefix}.index/index.json

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bwarp: \$(bwarp --version | sed 's/^bwarp //')
    END_VERSIONS
    """
}
