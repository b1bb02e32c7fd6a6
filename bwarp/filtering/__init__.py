"""Dropping candidates that provably have no alignment within the allowed edits."""
