"""Hits as tables: text and Parquet."""
