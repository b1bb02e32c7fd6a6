"""Composition scans: compare queries with all windows of their length by base counts."""
