"""Genomes and reads made up for demos, tests and benchmarks, with the truth beside them."""
