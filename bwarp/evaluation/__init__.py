"""Evaluate the accuracy of mapping against the truth and against other mappers."""
