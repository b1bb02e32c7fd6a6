"""Hits of a scan as rows, text and Parquet."""
