"""Simulate genomes and reads, with the truth about each, for demos, tests and benchmarks."""
