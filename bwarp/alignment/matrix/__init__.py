"""Filling the matrices of alignments: scores, ends, and directions for a traceback."""
