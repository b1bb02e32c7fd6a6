"""Kernels compiled and run without a GPU."""
