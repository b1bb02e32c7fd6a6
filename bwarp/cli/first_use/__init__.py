"""Parallel compilation of the functions of a program at its first use on a machine."""
