"""Reads in chunks, on the host and on a GPU."""
