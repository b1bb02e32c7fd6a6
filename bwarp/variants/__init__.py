"""Variants: read VCF and BCF files, and write the sequences around variants in haplotypes.

    file -> `Edits` of a stretch of a contig -> `Windows`: alternative sequences -> sites in them

An edit replaces the bases from `start` up to `stop` of the reference by others: an ALT allele
without the bases that it shares with REF at both ends. `start` equals `stop` for an insertion.
Edits are ordered by start, stop, and position in the file.

A haplotype carries the alleles of one column of phased genotypes; missing alleles are those of the
reference. Its edits are applied in order. An edit is not applied if it overlaps an applied one, or
inserts bases at the same position. An allele that an earlier line has is part of its edit.

An edit is free if the file does not tell which haplotypes carry it: there are no genotypes, or a
heterozygous genotype is unphased. Any haplotype may have it, in any combination with other free
edits that do not overlap it and are not of the same line.
"""
