"""The programs that say what became of the reads."""
