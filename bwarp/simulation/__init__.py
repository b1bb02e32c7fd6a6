"""Simulated genomes and reads for demos, tests and benchmarks, with the truth about each."""
