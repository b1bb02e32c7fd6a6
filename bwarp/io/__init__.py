"""File input and output: sequences, atomic outputs, and chunk files between programs."""
