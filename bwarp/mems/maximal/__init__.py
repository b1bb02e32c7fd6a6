"""All maximal matches."""
