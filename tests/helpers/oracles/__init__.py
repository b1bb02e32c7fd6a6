"""The slow and obvious ways to the same answers."""
