"""Composition scans: every query against every window of its own length, by base counts."""
