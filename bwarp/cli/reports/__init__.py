"""The programs that report on results."""
