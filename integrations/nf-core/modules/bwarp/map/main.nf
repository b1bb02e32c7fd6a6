process BWARP_MAP {
    tag "${meta.id}"
    label 'process_high'

    conda "${moduleDir}/environment.yml"
    container "${workflow.containerEngine == 'singularity' && !task.ext.singularity_pull_docker_container
        ? 'https://depot.galaxyproject.org/singularity/bwarp:0.1.0--pyhdfd78af_0'
        : 'biocontainers/bwarp:0.1.0--pyhdfd78af_0'}"

    input:
    tuple val(meta) , path(reads)
    tuple val(meta2), path(index)
    tuple val(meta3), path(fasta)
    val sort_bam

    output:
    tuple val(meta), path("*.bam") , emit: bam , optional: true
    tuple val(meta), path("*.cram"), emit: cram, optional: true
    tuple val(meta), path("*.bai") , emit: bai , optional: true
    tuple val(meta), path("*.csi") , emit: csi , optional: true
    tuple val(meta), path("*.crai"), emit: crai, optional: true
    path "versions.yml"            , emit: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    // ext.args are options of bwarp map, which accepts -K, -M, -R, -Y and -B of bwa mem.
    // ext.args2 are options of samtools, such as -n. Without them, bwarp sorts and writes the file.
    // ext.suffix is the format of the output: bam or cram.
    def args      = task.ext.args ?: ''
    def args2     = task.ext.args2 ?: ''
    def prefix    = task.ext.prefix ?: "${meta.id}"
    def suffix    = task.ext.suffix ?: 'bam'
    def input     = reads instanceof List && reads.size() == 2 ? "-1 ${reads[0]} -2 ${reads[1]}" : "-1 ${reads}"
    def reference = fasta && suffix == 'cram' ? "--reference ${fasta}" : ''
    def samtools  = sort_bam ? 'sort' : 'view'
    def sort      = sort_bam ? '--sort' : ''
    def output    = args2
        ? "-o - | samtools ${samtools} ${args2} ${reference} --threads ${task.cpus} -o ${prefix}.${suffix} -"
        : "${sort} ${reference} -o ${prefix}.${suffix}"
    if (suffix == 'cram' && !fasta) {
        error("BWARP_MAP: CRAM output needs the reference (fasta).")
    }
    """
    INDEX=\$(find -L ./ -name index.json | sed 's/\\/index.json\$//')

    bwarp map \\
        ${args} \\
        --threads ${task.cpus} \\
        --index \$INDEX \\
        ${input} \\
        ${output}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bwarp: \$(bwarp --version | sed 's/^bwarp //')
        samtools: \$(samtools --version | sed -n '1s/^samtools //p')
    END_VERSIONS
    """

    stub:
    def prefix = task.ext.prefix ?: "${meta.id}"
    def suffix = task.ext.suffix ?: 'bam'
    def index_suffix = suffix == 'cram' ? 'crai' : 'bai'
    """
    touch ${prefix}.${suffix}
    touch ${prefix}.${suffix}.${index_suffix}

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        bwarp: \$(bwarp --version | sed 's/^bwarp //')
        samtools: \$(samtools --version | sed -n '1s/^samtools //p')
    END_VERSIONS
    """
}
