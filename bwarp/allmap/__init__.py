"""Find every locus of the genome where a read aligns with few edits, missing none."""
