"""Real reads map to their published positions; differences are counted by kind.

A change of these counts is a change of alignments: benchmarks/map_real.py --list names the reads.
"""

import pytest

from bwarp.evaluation.agreement import count_kinds
from bwarp.mapping.parameters import MappingParameters
from bwarp.reference import codes_of, read_reference

SURE = 30

SETS = {
    "mitochondrion": (
        "reads_human_mito_na12878",
        ("Homo_sapiens_assembly38.mt_only.fasta", "NA12878_chrM_1.fq.gz", "NA12878_chrM_2.fq.gz"),
        "NA12878.bam",
        {
            "elsewhere, there better": 1,
            "mapped here only": 5,
            "mapped there only": 2,
            "same": 11463,
            "same locus, equal score": 6,
            "same locus, here better": 102,
        },
    ),
    "Ebola": (
        "reads_ebola_srr5019250",
        ("eboVir3.fa", "Ebola_forward.fastqsanger.gz", "Ebola_reverse.fastqsanger.gz"),
        "paired_refgen_isoform_abundances.bt2.bam",
        {
            "mapped here only": 714,
            "same": 7731,
            "same locus, equal score": 44,
            "same locus, here better": 213,
        },
    ),
    "rotavirus": (
        "reads_rotavirus_bwa",
        ("ref.fa", "R_1.fq.gz", "R_2.fq.gz"),
        "bwa.sam",
        {"same": 3997, "same locus, here better": 3},
    ),
    "samtools ex1": (
        "reads_samtools_ex1",
        ("ex1.fa", "ex1_1.fq.gz", "ex1_2.fq.gz"),
        "ex1.bam",
        {
            "elsewhere, here better": 2,
            "mapped here only": 18,
            "mapped there only": 17,
            "same": 3040,
            "same locus, equal score": 4,
            "same locus, here better": 63,
        },
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_kinds_of_difference(name, shared_data, run_program, tmp_path):
    folder, files, alignments, expected = SETS[name]
    fasta, *reads = (shared_data(folder, file) for file in files)
    for command in (
        ("index_reference.py", fasta, "-o", "index"),
        ("map_reads.py", "--index", "index", "-1", reads[0], "-2", reads[1], "-o", "out.sam"),
    ):
        done = run_program(*command, "--backend", "cpu", cwd=tmp_path)
        assert done.rc == 0, done.stderr
    reference = read_reference(fasta)
    codes, starts = codes_of(reference), reference.contig_starts
    contigs = {known: codes[starts[i] : starts[i + 1]] for i, known in enumerate(reference.names)}
    there = str(shared_data(folder, alignments))
    kinds = count_kinds(str(tmp_path / "out.sam"), there, contigs, MappingParameters(), SURE)
    assert kinds == expected
