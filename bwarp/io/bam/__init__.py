"""BAM as a format: compressed blocks, the order of records, its index, merging sorted files."""
