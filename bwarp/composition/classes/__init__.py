"""The scan by classes: windows of one histogram are compared once."""
