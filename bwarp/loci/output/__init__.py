"""Writing loci: TSV, PAF and BAM."""
