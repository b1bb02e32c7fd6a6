"""GATK's own alignment, base for base."""
