"""The main programs, called by users."""
