"""Pair by pair: scores, ends or whole alignments, from files and into files."""
