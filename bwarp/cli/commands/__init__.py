"""The programs that users call."""
