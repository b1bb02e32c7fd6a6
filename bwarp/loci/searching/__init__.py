"""Reads are cut into parts, and these searched in the index."""
