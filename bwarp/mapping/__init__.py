"""Read mapping: find the origin of sequencing reads, with reliable mapping qualities."""
