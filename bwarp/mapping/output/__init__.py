"""From primary alignments to records, files and statistics."""
