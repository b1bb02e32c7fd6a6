"""Maximal matches that are unique."""
