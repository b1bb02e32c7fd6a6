"""Matches as text and Parquet."""
