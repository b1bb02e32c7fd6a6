"""Mapping: where sequencing reads come from, as alignments with a quality one can rely on."""
