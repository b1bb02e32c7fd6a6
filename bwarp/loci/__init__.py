"""Every locus of the genome where a read aligns with few edits, none missed."""
